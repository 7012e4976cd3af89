// The events are those of the Pulumi CLI for the fixture program `cloud`, without unused fields.
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
/** A secret in the form of the CLI's events. */
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

/**
 * Returns the two engine events of one resource operation: the event before it, which has no new outputs yet, and the
 * event after it.
 */
function eventsOf(op: OpType, name: string, old: State | undefined, now: State | undefined): EngineEvent[] {
  const urn = `urn:pulumi:test::cloud::${TYPE}::${name}`;
  const metadata = (state: State | undefined) => ({
    op,
    urn,
    type: TYPE,
    provider: "",
    ...(old && { old: stateMetadata(urn, old) }),
    ...(state && { new: stateMetadata(urn, state) }),
  });
  const started = now && { inputs: now.inputs, outputs: {} };
  const common = { sequence: 0, timestamp: 0 };
  return [
    { ...common, resourcePreEvent: { metadata: metadata(started), planning: true } },
    { ...common, resOutputsEvent: { metadata: metadata(now), planning: true } },
  ] as EngineEvent[];
}

function stepsOf(events: EngineEvent[], values: boolean, command: Command = "preview"): Step[] {
  const reader = new CliEvents(new RunLog(() => {}), { command, planned: command !== "up", values });
  for (const event of events) reader.take(event);
  return reader.steps(true);
}

const small = { label: "a", password: SECRET, nested: SECRET, size: 1 };
const big = { ...small, size: 2 };
const created = { ...small, serial: SECRET };

describe("a plan with values from the CLI's events", () => {
  test("has an update", () => {
    const events = eventsOf(
      "update",
      "a",
      { id: "a-1", inputs: small, outputs: created },
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

  test("has a creation with unknown values", () => {
    const inputs = { label: "b", ref: UNKNOWN, list: [{ ref: UNKNOWN }] };
    const [step] = stepsOf(eventsOf("create", "b", undefined, { inputs, outputs: inputs }), true);
    const shown = { label: "b", ref: "[unknown]", list: [{ ref: "[unknown]" }] };
    expect(step?.after).toEqual({ inputs: shown, outputs: shown });
    expect(step).not.toHaveProperty("before");
  });

  test("has an unchanged resource and a deletion", () => {
    const state = { id: "c-1", inputs: { label: "c" }, outputs: { label: "c", serial: 3 } };
    const [same] = stepsOf(eventsOf("same", "c", state, state), true);
    expect(same).toMatchObject({ op: "same", before: same?.after, after: { outputs: { serial: 3 } } });
    const [deletion] = stepsOf(eventsOf("delete", "c", state, undefined), true);
    expect(deletion).toMatchObject({ op: "delete", before: { inputs: { label: "c" } } });
    expect(deletion).not.toHaveProperty("after");
  });

  const old: State = { id: "c-1", inputs: { label: "c" }, outputs: { label: "c", serial: 3 } };
  const deleting: State = { ...old, delete: true };
  const now: State = { inputs: { label: "z" }, outputs: { label: "z" } };
  test.each([
    [
      "creates first",
      [
        ...eventsOf("create-replacement", "c", old, now),
        ...eventsOf("replace", "c", deleting, now),
        ...eventsOf("delete-replaced", "c", deleting, undefined),
      ],
    ],
    [
      "deletes first",
      [
        ...eventsOf("delete-replaced", "c", old, undefined),
        ...eventsOf("replace", "c", old, now),
        ...eventsOf("create-replacement", "c", old, now),
      ],
    ],
  ])("has one step for a replacement that %s", (_order, events) => {
    expect(stepsOf(events, true)).toMatchObject([
      {
        op: "replace",
        before: { inputs: { label: "c" }, outputs: { serial: 3 } },
        after: { inputs: { label: "z" }, outputs: { label: "z" } },
      },
    ]);
  });

  test("has the refreshed values before the update", () => {
    const read: State = { id: "a-1", inputs: { size: 1 }, outputs: { size: 9 } };
    const events = [
      ...eventsOf("refresh", "a", { id: "a-1", inputs: { size: 1 }, outputs: { size: 1 } }, read),
      ...eventsOf("update", "a", read, { id: "a-1", inputs: { size: 1 }, outputs: { size: 1 } }),
    ];
    expect(stepsOf(events, true)).toMatchObject([
      { op: "update", before: { outputs: { size: 9 } }, after: { outputs: { size: 1 } } },
    ]);
  });

  test("has no values before an import", () => {
    const read: State = { id: "t-1", inputs: { label: "t" }, outputs: { label: "t", serial: 3 } };
    const [step] = stepsOf(eventsOf("import", "t", read, read), true);
    expect(step).toMatchObject({ op: "import", after: { outputs: { serial: 3 } } });
    expect(step).not.toHaveProperty("before");
  });

  test("has a separate step for a pending deletion of an earlier run", () => {
    const kept: State = { id: "c-2", inputs: { label: "z" }, outputs: { label: "z", serial: 3 } };
    const events = [
      ...eventsOf("same", "c", kept, kept),
      ...eventsOf("delete-replaced", "c", deleting, undefined),
    ];
    const [same, deletion] = stepsOf(events, true);
    expect(same).toMatchObject({ op: "same", id: "c-2", before: { inputs: { label: "z" } } });
    expect(deletion).toMatchObject({ op: "delete", id: "c-1", before: { inputs: { label: "c" } } });
    expect(deletion).not.toHaveProperty("after");
  });

  test("contains no values unless the caller requests them", () => {
    const state = { id: "c-1", inputs: { label: "c" }, outputs: {} };
    for (const step of stepsOf(eventsOf("same", "c", state, state), false)) {
      expect(step).not.toHaveProperty("before");
      expect(step).not.toHaveProperty("after");
    }
  });
});

test("the result of an interrupted run contains only the finished steps", () => {
  const state = { id: "c-1", inputs: { label: "c" }, outputs: {} };
  const reader = new CliEvents(new RunLog(() => {}), { command: "up", planned: false });
  const [started] = eventsOf("create", "second", undefined, state);
  for (const event of [...eventsOf("create", "first", undefined, state), started as EngineEvent])
    reader.take(event);
  expect(reader.steps(true).map(({ name }) => name)).toEqual(["first", "second"]);
  expect(reader.steps(false).map(({ name }) => name)).toEqual(["first"]);
});

test("the result of an interrupted run contains a replacement whose object was created, and a component without an end event", () => {
  const [old, now] = [
    { id: "t-1", inputs: { label: "a" }, outputs: {} },
    { id: "t-2", inputs: { label: "b" }, outputs: {} },
  ];
  const reader = new CliEvents(new RunLog(() => {}), { command: "up", planned: false });
  const [deletion] = eventsOf("delete-replaced", "thing", old, undefined);
  const [component] = eventsOf("create", "group", undefined, { inputs: {}, outputs: {} });
  const { resourcePreEvent } = structuredClone(component) as EngineEvent;
  Object.assign(resourcePreEvent?.metadata.new ?? {}, { custom: false });
  reader.take({ sequence: 0, timestamp: 0, ...(resourcePreEvent && { resourcePreEvent }) });
  for (const event of [...eventsOf("create-replacement", "thing", old, now), deletion]) {
    reader.take(event as EngineEvent);
  }
  expect(reader.steps(false).map(({ op, name }) => [op, name])).toEqual([
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

describe("an object that a provider reports as adopted", () => {
  const created = eventsOf("create", "it", undefined, { id: "t/1", inputs: small, outputs: small });

  test.each([
    ["before", [notice("it", "t/1"), ...created]],
    ["after", [...created, notice("it", "t/1")]],
  ])("is an import if the notice comes %s the end of the step", (_, events) => {
    expect(stepsOf(events, false, "up")).toMatchObject([{ op: "import", name: "it", id: "t/1" }]);
  });

  test.each([notice("it", "t/2"), notice("other", "t/1")])(
    "is not counted as an import if the notice has a different name or id",
    (event) => {
      expect(stepsOf([event, ...created, event], false, "up")).toMatchObject([{ op: "create", id: "t/1" }]);
    },
  );
});

test.each([
  ["a rejected input", `${TYPE} resource 'it' has a problem: size: must be at least 0`],
  ["a failed property", `${TYPE} resource 'it': size: must be at least 0`],
])("the CLI's prefix of %s is removed, since the URN identifies the resource", (_, message) => {
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
  const resource = (type: string, name: string, more: Partial<State> & { provider?: string } = {}) => ({
    ...stateMetadata(`urn:pulumi:test::cloud::${type}::${name}`, {
      id: `id-${name}`,
      inputs: {},
      outputs: {},
      ...more,
    }),
    type,
  });
  const done = (op: OpType, old: Metadata | undefined, now: Metadata | undefined): EngineEvent => {
    const { urn = "", type = "" } = now ?? old ?? {};
    const metadata = { op, urn, type, provider: "", ...(old && { old }), ...(now && { new: now }) };
    return { sequence: 0, timestamp: 0, resOutputsEvent: { metadata, planning: true } } as EngineEvent;
  };
  type Metadata = ReturnType<typeof resource>;

  test("have the type name of their class, and a dynamic provider's code is no change", () => {
    expect(typeName(KEY)).toBe("PublicKey");
    const old = resource(KEY, "ana", { inputs: { name: "ana" }, outputs: { name: "ana" } });
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

  test("are counted as imports if the plugin reports their adoption", () => {
    const log = (message: string, urn: string): EngineEvent => ({
      sequence: 0,
      timestamp: 0,
      diagnosticEvent: { urn, message, color: "never", severity: "info" },
    });
    const key = resource(KEY, "ana");
    const creation = (op: "resourcePreEvent" | "resOutputsEvent") =>
      ({
        sequence: 0,
        timestamp: 0,
        [op]: { metadata: { op: "create", urn: key.urn, type: KEY, provider: "", new: key } },
      }) as unknown as EngineEvent;
    const notice = log('PublicKey "ana": adopted the existing object id-ana', key.urn);
    const steps = stepsOf([creation("resourcePreEvent"), notice, creation("resOutputsEvent")], false, "up");
    expect(steps).toMatchObject([{ op: "import", name: "ana" }]);
  });

  test("have the inputs of their provider instance in any order of events", () => {
    const urls = { inputs: { url: "https://old.example.org", password: SECRET } };
    const instance = resource(INSTANCE, "other", urls);
    const usual = { inputs: { url: "https://usual.example.org", apiKey: SECRET } };
    const another = resource(INSTANCE, "default_0_1_0", usual);
    const of = ({ urn, id }: Metadata) => ({ provider: `${urn}::${id}` });
    const [deleted, kept] = [resource(KEY, "deleted", of(instance)), resource(KEY, "kept", of(another))];
    const steps = stepsOf(
      [
        done("same", another, another),
        done("same", kept, kept),
        done("delete", deleted, undefined),
        done("delete", instance, undefined),
      ],
      true,
    );
    // The program declares a provider instance, which is a resource with its own step.
    expect(steps.map(({ op, name }) => [op, name])).toEqual([
      ["same", "kept"],
      ["delete", "deleted"],
      ["delete", "other"],
    ]);
    // The default provider instance uses the stack's credential. So the step's provider settings contain only the URL.
    expect(steps[0]?.after?.provider).toEqual({ url: "https://usual.example.org" });
    expect(steps[1]?.before?.provider).toEqual({ url: "https://old.example.org", password: "[secret]" });
  });
});

test("a warning without a resource is reported once", () => {
  const log = new RunLog(() => {});
  const events = new CliEvents(log, { command: "preview", planned: true });
  const diagnosticEvent = { message: "using it from $PATH", color: "never", severity: "warning" } as const;
  for (const sequence of [0, 1]) events.take({ sequence, timestamp: 0, diagnosticEvent });
  expect(log.diagnostics).toHaveLength(1);
});
