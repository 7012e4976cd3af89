// The events are those that the Pulumi CLI tells of the fixture program `cloud`, without the fields that nobody reads.
import type { EngineEvent, OpType } from "@pulumi/pulumi/automation/index.js";
import { describe, expect, test } from "vitest";
import { CliEvents } from "../../provider/engine/cli/cliEvents.ts";
import type { Command, Step } from "../../provider/engine/index.ts";
import { RunLog } from "../../provider/engine/runLog.ts";
import { typeName } from "../../provider/urn.ts";

type Props = Record<string, unknown>;
type State = { id?: string; inputs: Props; outputs: Props; delete?: true };

const TYPE = "pulumi-nodejs:dynamic/cloud:Thing";
const code = { __provider: 'exports.handler = () => require(process.cwd() + "/provider.js")' };
/** A secret as the CLI tells it, and a value that it does not know yet. */
const SECRET = {
  "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
  ciphertext: "[secret]",
};
const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

function stateMetadata(urn: string, { id = "", inputs, outputs, ...rest }: State) {
  return {
    type: TYPE,
    urn,
    custom: true,
    id,
    parent: "urn:pulumi:test::cloud::pulumi:pulumi:Stack::cloud-test",
    inputs: { ...code, ...inputs },
    outputs: Object.keys(outputs).length > 0 ? { ...code, ...outputs } : {},
    provider: "",
    ...rest,
  };
}

/** Both events of one operation; in the first one nothing is known of the outcome. */
function told(op: OpType, name: string, old: State | undefined, now: State | undefined): EngineEvent[] {
  const urn = `urn:pulumi:test::cloud::${TYPE}::${name}`;
  const metadata = (state: State | undefined) => ({
    op,
    urn,
    type: TYPE,
    provider: "",
    ...(old && { old: stateMetadata(urn, old) }),
    ...(state && { new: stateMetadata(urn, state) }),
  });
  const begun = now && { inputs: now.inputs, outputs: {} };
  const common = { sequence: 0, timestamp: 0 };
  return [
    { ...common, resourcePreEvent: { metadata: metadata(begun), planning: true } },
    { ...common, resOutputsEvent: { metadata: metadata(now), planning: true } },
  ] as EngineEvent[];
}

function stepsOf(events: EngineEvent[], values: boolean, command: Command = "preview"): Step[] {
  const taker = new CliEvents(new RunLog(() => {}), { command, planned: command !== "up", values });
  for (const event of events) taker.take(event);
  return taker.steps(true);
}

const small = { label: "a", password: SECRET, nested: SECRET, size: 1 };
const big = { ...small, size: 2 };
const made = { ...small, serial: SECRET };

describe("the CLI's events as a plan with values", () => {
  test("an update", () => {
    const events = told(
      "update",
      "a",
      { id: "a-1", inputs: small, outputs: made },
      { id: "a-1", inputs: big, outputs: big },
    );
    const hidden = { label: "a", password: "[secret]", nested: "[secret]" };
    const [step] = stepsOf(events, true);
    expect(step).toMatchObject({ op: "update", id: "a-1", fields: [{ path: "size", old: 1, new: 2 }] });
    expect(step?.before).toEqual({
      inputs: { ...hidden, size: 1 },
      outputs: { ...hidden, size: 1, serial: "[secret]" },
    });
    expect(step?.after).toEqual({ inputs: { ...hidden, size: 2 }, outputs: { ...hidden, size: 2 } });
    expect(JSON.stringify(step)).not.toContain("ciphertext");
  });

  test("a creation, with a value that is not known yet", () => {
    const inputs = { label: "b", ref: UNKNOWN, list: [{ ref: UNKNOWN }] };
    const [step] = stepsOf(told("create", "b", undefined, { inputs, outputs: inputs }), true);
    const shown = { label: "b", ref: "[unknown]", list: [{ ref: "[unknown]" }] };
    expect(step?.after).toEqual({ inputs: shown, outputs: shown });
    expect(step).not.toHaveProperty("before");
  });

  test("nothing to do, and a deletion", () => {
    const state = { id: "c-1", inputs: { label: "c" }, outputs: { label: "c", serial: 3 } };
    const [same] = stepsOf(told("same", "c", state, state), true);
    expect(same).toMatchObject({ op: "same", before: same?.after, after: { outputs: { serial: 3 } } });
    const [gone] = stepsOf(told("delete", "c", state, undefined), true);
    expect(gone).toMatchObject({ op: "delete", before: { inputs: { label: "c" } } });
    expect(gone).not.toHaveProperty("after");
  });

  const old: State = { id: "c-1", inputs: { label: "c" }, outputs: { label: "c", serial: 3 } };
  const dying: State = { ...old, delete: true };
  const now: State = { inputs: { label: "z" }, outputs: { label: "z" } };
  test.each([
    [
      "creates first",
      [
        ...told("create-replacement", "c", old, now),
        ...told("replace", "c", dying, now),
        ...told("delete-replaced", "c", dying, undefined),
      ],
    ],
    [
      "deletes first",
      [
        ...told("delete-replaced", "c", old, undefined),
        ...told("replace", "c", old, now),
        ...told("create-replacement", "c", old, now),
      ],
    ],
  ])("a replacement that %s is one step", (_what, events) => {
    expect(stepsOf(events, true)).toMatchObject([
      {
        op: "replace",
        before: { inputs: { label: "c" }, outputs: { serial: 3 } },
        after: { inputs: { label: "z" }, outputs: { label: "z" } },
      },
    ]);
  });

  test("after a refresh, what was read comes before", () => {
    const read: State = { id: "a-1", inputs: { size: 1 }, outputs: { size: 9 } };
    const events = [
      ...told("refresh", "a", { id: "a-1", inputs: { size: 1 }, outputs: { size: 1 } }, read),
      ...told("update", "a", read, { id: "a-1", inputs: { size: 1 }, outputs: { size: 1 } }),
    ];
    expect(stepsOf(events, true)).toMatchObject([
      { op: "update", before: { outputs: { size: 9 } }, after: { outputs: { size: 1 } } },
    ]);
  });

  test("an import has nothing before it, whatever was read", () => {
    const read: State = { id: "t-1", inputs: { label: "t" }, outputs: { label: "t", serial: 3 } };
    const [step] = stepsOf(told("import", "t", read, read), true);
    expect(step).toMatchObject({ op: "import", after: { outputs: { serial: 3 } } });
    expect(step).not.toHaveProperty("before");
  });

  test("what an earlier run left over is a deletion of its own, beside what its resource is now", () => {
    const kept: State = { id: "c-2", inputs: { label: "z" }, outputs: { label: "z", serial: 3 } };
    const events = [...told("same", "c", kept, kept), ...told("delete-replaced", "c", dying, undefined)];
    const [same, gone] = stepsOf(events, true);
    expect(same).toMatchObject({ op: "same", id: "c-2", before: { inputs: { label: "z" } } });
    expect(gone).toMatchObject({ op: "delete", id: "c-1", before: { inputs: { label: "c" } } });
    expect(gone).not.toHaveProperty("after");
  });

  test("values that nobody asked for are not there", () => {
    const state = { id: "c-1", inputs: { label: "c" }, outputs: {} };
    for (const step of stepsOf(told("same", "c", state, state), false)) {
      expect(step).not.toHaveProperty("before");
      expect(step).not.toHaveProperty("after");
    }
  });
});

test("a run that was cut off has the steps that ended, and not one that only began", () => {
  const state = { id: "c-1", inputs: { label: "c" }, outputs: {} };
  const taker = new CliEvents(new RunLog(() => {}), { command: "up", planned: false });
  const [begun] = told("create", "second", undefined, state);
  for (const event of [...told("create", "first", undefined, state), begun as EngineEvent]) taker.take(event);
  expect(taker.steps(true).map(({ name }) => name)).toEqual(["first", "second"]);
  expect(taker.steps(false).map(({ name }) => name)).toEqual(["first"]);
});

test("of a replacement that was cut off, the new object counts; so does a component whose end is not told", () => {
  const [old, now] = [
    { id: "t-1", inputs: { label: "a" }, outputs: {} },
    { id: "t-2", inputs: { label: "b" }, outputs: {} },
  ];
  const taker = new CliEvents(new RunLog(() => {}), { command: "up", planned: false });
  const [deletion] = told("delete-replaced", "thing", old, undefined);
  const [component] = told("create", "group", undefined, { inputs: {}, outputs: {} });
  const { resourcePreEvent } = structuredClone(component) as EngineEvent;
  Object.assign(resourcePreEvent?.metadata.new ?? {}, { custom: false });
  taker.take({ sequence: 0, timestamp: 0, ...(resourcePreEvent && { resourcePreEvent }) });
  for (const event of [...told("create-replacement", "thing", old, now), deletion]) {
    taker.take(event as EngineEvent);
  }
  expect(taker.steps(false).map(({ op, name }) => [op, name])).toEqual([
    ["create", "group"],
    ["replace", "thing"],
  ]);
});

const notice = (name: string, id: string): EngineEvent => ({
  sequence: 0,
  timestamp: 0,
  diagnosticEvent: {
    message: `Thing "${name}": adopted the existing object ${id}\n`,
    color: "never",
    severity: "info",
  },
});

describe("what a provider says it took over", () => {
  const created = told("create", "it", undefined, { id: "t/1", inputs: small, outputs: small });

  test.each([
    ["before", [notice("it", "t/1"), ...created]],
    ["after", [...created, notice("it", "t/1")]],
  ])("is adopted, told of %s the step's end", (_, events) => {
    expect(stepsOf(events, false, "up")).toMatchObject([{ op: "import", name: "it", id: "t/1" }]);
  });

  test.each([notice("it", "t/2"), notice("other", "t/1")])("is that object alone", (event) => {
    expect(stepsOf([event, ...created, event], false, "up")).toMatchObject([{ op: "create", id: "t/1" }]);
  });
});

test.each([
  ["a refused input", `${TYPE} resource 'it' has a problem: size: must be at least 0`],
  ["a failed property", `${TYPE} resource 'it': size: must be at least 0`],
])("what the CLI puts before %s is not repeated: the URN says whose it is", (_, message) => {
  const log = new RunLog(() => {});
  const urn = `urn:pulumi:test::cloud::${TYPE}::it`;
  new CliEvents(log, { command: "preview", planned: true, values: false }).take({
    sequence: 0,
    timestamp: 0,
    diagnosticEvent: { urn, message, color: "never", severity: "error" },
  });
  expect(log.diagnostics).toEqual([{ urn, severity: "error", message: "size: must be at least 0" }]);
});

describe("resources of the plugin", () => {
  const KEY = "gatehouse:index:PublicKey";
  const INSTANCE = "pulumi:providers:gatehouse";
  const made = (type: string, name: string, more: Partial<State> & { provider?: string } = {}) => ({
    ...stateMetadata(`urn:pulumi:test::cloud::${type}::${name}`, {
      ...{ id: `id-${name}`, inputs: {}, outputs: {} },
      ...more,
    }),
    type,
  });
  const done = (op: OpType, old: Metadata | undefined, now: Metadata | undefined): EngineEvent => {
    const { urn = "", type = "" } = now ?? old ?? {};
    const metadata = { op, urn, type, provider: "", ...(old && { old }), ...(now && { new: now }) };
    return { sequence: 0, timestamp: 0, resOutputsEvent: { metadata, planning: true } } as EngineEvent;
  };
  type Metadata = ReturnType<typeof made>;

  test("have the name of their class, and no change that is a dynamic provider's code alone", () => {
    expect(typeName(KEY)).toBe("PublicKey");
    const old = made(KEY, "ana", { inputs: { name: "ana" }, outputs: { name: "ana" } });
    const now = { ...old, inputs: { name: "ana" }, outputs: { name: "ana" } } as unknown as Metadata;
    for (const [before, after] of [
      [old, now],
      [now, old],
    ] as const) {
      expect(stepsOf([done("update", before, after)], true)).toMatchObject([
        { op: "update", fields: [], after: { inputs: { name: "ana" }, outputs: { name: "ana" } } },
      ]);
      expect(stepsOf([done("refresh", before, after)], false, "drift")).toMatchObject([{ op: "same" }]);
    }
  });

  test("are adopted where the plugin says so", () => {
    const log = (message: string, urn: string): EngineEvent => ({
      ...{ sequence: 0, timestamp: 0 },
      diagnosticEvent: { urn, message, color: "never", severity: "info" },
    });
    const key = made(KEY, "ana");
    const told = (op: "resourcePreEvent" | "resOutputsEvent") =>
      ({
        ...{ sequence: 0, timestamp: 0 },
        [op]: { metadata: { op: "create", urn: key.urn, type: KEY, provider: "", new: key } },
      }) as unknown as EngineEvent;
    const notice = log('PublicKey "ana": adopted the existing object id-ana', key.urn);
    const steps = stepsOf([told("resourcePreEvent"), notice, told("resOutputsEvent")], false, "up");
    expect(steps).toMatchObject([{ op: "import", name: "ana" }]);
  });

  test("tell the inputs of their provider instance, whichever is told first", () => {
    const urls = { inputs: { url: "https://old.example.org", password: SECRET } };
    const instance = made(INSTANCE, "other", urls);
    const usual = { inputs: { url: "https://usual.example.org", apiKey: SECRET } };
    const another = made(INSTANCE, "default_0_1_0", usual);
    const of = ({ urn, id }: Metadata) => ({ provider: `${urn}::${id}` });
    const [gone, kept] = [made(KEY, "gone", of(instance)), made(KEY, "kept", of(another))];
    const steps = stepsOf(
      [
        done("same", another, another),
        done("same", kept, kept),
        done("delete", gone, undefined),
        done("delete", instance, undefined),
      ],
      true,
    );
    // The instance that a program makes is a resource of its own.
    expect(steps.map(({ op, name }) => [op, name])).toEqual([
      ...[
        ["same", "kept"],
        ["delete", "gone"],
        ["delete", "other"],
      ],
    ]);
    // The default instance has the stack's credential.
    expect(steps[0]?.after?.provider).toEqual({ url: "https://usual.example.org" });
    expect(steps[1]?.before?.provider).toEqual({ url: "https://old.example.org", password: "[secret]" });
  });
});

test("a warning about no resource is said once", () => {
  const log = new RunLog(() => {});
  const events = new CliEvents(log, { command: "preview", planned: true });
  const diagnosticEvent = { message: "using it from $PATH", color: "never", severity: "warning" } as const;
  for (const sequence of [0, 1]) events.take({ sequence, timestamp: 0, diagnosticEvent });
  expect(log.diagnostics).toHaveLength(1);
});
