import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type Plan,
  type ProgramError,
  UnsupportedError,
  UpdateFailedError,
} from "../../provider/engine/index.ts";
import { describeEngines } from "../support/gatehouse.ts";
import { type ProgramPlan, type Thing, testWorkspace, Workspace } from "./workspace.ts";

const ws = testWorkspace();

function allText(folder: string): string {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");
}

// Long tests run a program more than five times, or with many resources.
describe("the embedded engine", () => {
  test("supports the lifecycle of a stack: create, no change, update, replace, delete, destroy", async () => {
    const stack = await ws.open();
    ws.plan({
      things: [
        { name: "a", args: { size: 1 } },
        { name: "b", from: { ref: ["a", "serial"] } },
      ],
    });

    const plan = await stack.preview();
    expect(plan).toMatchObject({ ok: true, createdStack: true, summary: { create: 3 } });
    expect(ws.calls()).toEqual([]);
    expect(plan.steps.find((step) => step.name === "b")?.fields).toContainEqual({
      path: "ref",
      new: "[unknown]",
    });

    const first = await ws.up();
    expect(first).toMatchObject({ ok: true, summary: { create: 3 } });
    expect(ws.calls()).toEqual(["create a", "created a", "create b", "created b"]);

    expect(await stack.up()).toMatchObject({ summary: { create: 0, same: 3 } });
    expect(ws.calls()).toEqual([]);

    ws.plan({
      things: [
        { name: "a", args: { size: 2 } },
        { name: "b", args: { label: "other" } },
      ],
    });
    const second = await ws.up();
    expect(second.summary).toMatchObject({ update: 1, replace: 1, same: 1 });
    expect(second.steps.find((step) => step.name === "a")?.fields).toEqual([
      { path: "size", old: 1, new: 2 },
    ]);
    expect(second.steps.find((step) => step.name === "b")).toMatchObject({ replaceKeys: ["label"] });
    expect(ws.calls().sort()).toEqual(["create other", "created other", "delete b", "deleted b", "update a"]);

    ws.plan({ things: [{ name: "a", args: { size: 2 } }] });
    expect((await ws.up()).summary).toMatchObject({ delete: 1 });
    expect(ws.objects()).toEqual(["a"]);

    expect((await stack.destroy()).summary).toMatchObject({ delete: 2 });
    expect(ws.objects()).toEqual([]);
    expect(ws.names()).toEqual([]);
  });

  test("keeps secrets out of all files, results and events", { tags: ["long"] }, async () => {
    ws.plan({
      things: [
        {
          name: "a",
          args: { password: "swordfish-1", nested: { pin: "swordfish-2" } },
          secret: ["password", "nested"],
        },
      ],
      outputs: { password: ["a", "password"], nested: ["a", "nested"] },
    });
    const events: string[] = [];
    const stack = await ws.open({ onEvent: (event) => events.push(JSON.stringify(event)) });
    const results = [
      await stack.preview(),
      await stack.up({ skipPreview: true }),
      await stack.drift(),
      await stack.refresh(),
    ];
    expect(JSON.stringify(results) + events.join()).not.toContain("swordfish");
    expect(JSON.stringify(results)).not.toContain("__provider");
    expect(results[1]?.outputs).toEqual({ password: "[secret]", nested: "[secret]" });
    expect(allText(ws.state)).not.toContain("swordfish");
    expect(allText(ws.cloud)).toContain("swordfish-1");
  });

  test("masks a whole secret even if another secret is its beginning", async () => {
    const args = { a: "hunter2", b: "hunter2-prod-91X", c: "hunter2" };
    ws.plan({
      things: [{ name: "a", args, secret: ["a", "b", "c"] }],
      throw: "neither hunter2 nor hunter2-prod-91X",
    });
    const error = (await ws.up().catch((e: unknown) => e)) as ProgramError;
    expect(error.message).toContain("neither [secret] nor [secret]");
    expect(JSON.stringify(error.result)).not.toMatch(/hunter2|91X/);
  });

  test("stops before the first write if inputs are invalid, and reports all invalid inputs", async () => {
    ws.plan({
      things: [{ name: "good" }, { name: "x", args: { label: "" } }, { name: "y", args: { label: "" } }],
    });
    const error = await (await ws.open()).up().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(UpdateFailedError);
    const failed = (error as UpdateFailedError).result.steps.filter((step) => step.error);
    expect(failed.map((step) => [step.name, step.error])).toEqual([
      ["x", "label: must not be empty"],
      ["y", "label: must not be empty"],
    ]);
    expect(ws.calls()).toEqual([]);
  });

  test("counts only the performed steps of a failed run", { tags: ["long"] }, async () => {
    const slow = Array.from({ length: 8 }, (_, i) => ({ name: `slow${i}`, args: { slow: 200 } }));
    ws.plan({ things: [{ name: "bad", args: { fail: "create" } }, ...slow] });
    const error = (await (
      await ws.open({ parallel: 2 })
    )
      .up({ skipPreview: true })
      .catch((e: unknown) => e)) as UpdateFailedError;
    expect(error.result.summary.create).toBe(ws.objects().length + 1);
    expect(ws.names()).toHaveLength(ws.objects().length + 2);
    expect(ws.objects().length).toBeLessThan(8);
  });

  test("marks a deletion that keeps its object", async () => {
    const stack = await ws.open();
    ws.plan({ things: [{ name: "kept", options: { retainOnDelete: true } }, { name: "gone" }] });
    await ws.up();
    ws.plan({});
    for (const { steps } of [await stack.preview(), await ws.up()])
      expect(steps.filter(({ retained }) => retained)).toMatchObject([{ name: "kept", op: "delete" }]);
  });

  test.each([
    ["an invoke", { invoke: "aws:getRegion" }, "invoke"],
    ["a resource of a plugin", { foreign: "gatehouse:index:PublicKey" }, "package"],
    ["a provider instance of a plugin", { foreign: "pulumi:providers:gatehouse" }, "explicit-provider"],
    ["a transform", { transform: true }, "transforms"],
    ["a nested path", { things: [{ name: "a", options: { ignoreChanges: ["nested.x"] } }] }, "nested-paths"],
  ])("rejects %s before the first write", async (_feature, plan, id) => {
    const things = "things" in plan ? plan.things : [];
    ws.plan({ ...plan, things: [{ name: "first" }, ...things] });
    const error = await (await ws.open()).up().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(UnsupportedError);
    expect((error as UnsupportedError).uses.map((use) => use.id)).toContain(id);
    expect(ws.calls()).toEqual([]);
    expect(ws.names()).toEqual([]);
  });
});

test("the embedded engine rejects a state with resources of a plugin, and prints the remedy", async () => {
  const resource = (type: string, name: string) => ({
    urn: `urn:pulumi:test::cloud::${type}::${name}`,
    custom: true,
    id: name,
    type,
  });
  const folder = join(ws.state, ".pulumi", "stacks", "cloud");
  const resources = [
    resource("pulumi:providers:gatehouse", "default_0_1_0"),
    resource("pulumi:providers:gatehouse", "other"),
    resource("gatehouse:index:PublicKey", "ana"),
  ];
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(ws.state, ".pulumi", "meta.yaml"), "version: 1\n");
  writeFileSync(
    join(folder, "test.json"),
    JSON.stringify({ version: 3, checkpoint: { latest: { resources } } }),
  );
  const error = await (await ws.open()).up().catch((e: unknown) => e);
  expect(error).toBeInstanceOf(UnsupportedError);
  expect((error as UnsupportedError).uses.map((use) => use.id)).toEqual([
    "package",
    "explicit-provider",
    "package",
  ]);
  expect((error as UnsupportedError).message).toMatch(
    /ana \(gatehouse:index:PublicKey, in the state\): resources of plugins[\s\S]*install the Pulumi CLI, see https:/,
  );
});

describeEngines("the number of program runs in an up", {}, (engine) => {
  const up = async (...args: string[]) => {
    ws.runs();
    const ended = await ws.command("up", ws.folder, "--yes", "--stack", "test", "--engine", engine, ...args);
    return { ...ended, runs: ws.runs() };
  };

  test("is one with --skip-preview", async () => {
    ws.plan({ things: [{ name: "a", args: { size: 1 } }] });
    expect(await up("--skip-preview")).toMatchObject({ code: 0, runs: 1 });
    expect(ws.objects()).toEqual(["a"]);
    ws.plan({ things: [{ name: "a", args: { size: 2 } }] });
    const changed = await up("--skip-preview");
    expect(changed).toMatchObject({ code: 0, runs: 1, output: expect.stringContaining("1 updated") });
    expect(changed.output).not.toContain("Previewing");
    ws.plan({ things: [{ name: "a", args: { label: "" } }] });
    expect(await up("--skip-preview")).toMatchObject({
      code: 1,
      output: expect.stringContaining("must not be empty"),
    });
    const both = await up("--skip-preview", "--plan", "x");
    expect(both).toMatchObject({ code: 1, runs: 0, output: expect.stringContaining("cannot be used with") });
  });

  test("is one without changes", { tags: ["long"] }, async () => {
    const secret = { args: { size: 1, password: "swordfish" }, secret: ["password"] };
    ws.plan({
      things: [
        { name: "a", ...secret },
        { name: "b", group: "g" },
      ],
      outputs: { size: ["a", "size"], password: ["a", "password"] },
    });
    expect(await up()).toMatchObject({ code: 0, runs: 2 });
    ws.calls();
    const before = ws.stored();
    const again = {
      code: 0,
      runs: 1,
      output: expect.stringContaining("No changes: the program matches the state and the outputs"),
    };
    expect(await up()).toMatchObject(again);
    expect([ws.calls(), ws.stored()]).toEqual([[], before]);

    // This program has no secrets, because the Pulumi CLI cannot detect changes of a secret that it read from the
    // provider.
    ws.plan({ things: [{ name: "a", args: { size: 1 } }] });
    await up();
    expect(await up("--refresh")).toMatchObject(again);
    ws.calls();
    ws.tamper("a", { size: 5 });
    expect((await up()).runs).toBe(1);
    expect(await up("--refresh")).toMatchObject({ code: 0, runs: 2 });
    expect(ws.calls()).toEqual(["update a"]);
  });

  /** Runs the first `count` of the cases below. Each case is an up that changes only the state. */
  const changesOfState = async (count: number): Promise<void> => {
    const stack = await ws.open({ engine });
    const cases: [title: string, plan: ProgramPlan][] = [];
    const add = (title: string, plan: ProgramPlan): number =>
      cases.push([title, { ...cases.at(-1)?.[1], ...plan }]);
    const a = (options: Thing["options"]) => ({ name: "a", options: { ...options } });
    const both = { protect: true, retainOnDelete: true };
    add("initially", { things: [a({}), { name: "b" }] });
    add("a resource is protected", { things: [a({ protect: true }), { name: "b" }] });
    add("a resource is retained on delete", { things: [a(both), { name: "b" }] });
    add("a resource is deleted with another one", {
      things: [a(both), { name: "b", options: { deletedWith: "a" } }],
    });
    const tied = { deletedWith: "a", dependsOn: ["a"] };
    add("a resource depends on another one", { things: [a(both), { name: "b", options: tied }] });
    add("an output is added", { outputs: { id: ["a", "id"] } });
    const renamed = { name: "c", args: { label: "b" }, options: { ...tied, aliases: [{ name: "b" }] } };
    add("a resource is renamed", { things: [a(both), renamed] });

    let before: unknown;
    for (const [at, [title, plan]] of cases.slice(0, count + 1).entries()) {
      ws.plan(plan);
      ws.calls();
      ws.runs();
      expect([title, (await stack.up(at === 0 ? { skipPreview: true } : {})).ok]).toEqual([title, true]);
      if (at > 0) expect([title, ws.runs(), ws.calls()]).toEqual([title, 2, []]);
      const facts = ws.stored().resources?.map(({ sourcePosition: _, stackTrace: __, ...rest }) => rest);
      expect([title, facts]).not.toEqual([title, before]);
      before = facts;
    }
    ws.runs();
    await stack.up();
    expect(ws.runs()).toBe(1);
  };
  test("is two if only the state changes", { tags: ["long"] }, () => changesOfState(1));
  test("is two for any change of the state", { tags: ["long"] }, () =>
    changesOfState(Number.POSITIVE_INFINITY),
  );
});

test("an up without changes needs no confirmation, unless it applies a saved plan", {
  tags: ["long"],
}, async () => {
  ws.plan({ things: [{ name: "a" }] });
  const stack = await ws.open();
  await stack.up({ skipPreview: true });
  const confirmed: Plan[] = [];
  const confirm = async (plan: Plan): Promise<boolean> => confirmed.push(plan) > 0;
  expect(await stack.up({ confirm })).toMatchObject({ ok: true, planned: false, command: "up" });
  expect(confirmed).toEqual([]);
  await stack.up({ confirm, held: true });
  expect(confirmed).toHaveLength(1);
  ws.plan({ things: [{ name: "a", args: { size: 2 } }] });
  expect((await stack.up({ confirm, skipPreview: true })).summary).toMatchObject({ update: 1 });
  expect(confirmed).toHaveLength(1);
});

describe("drift and refresh", () => {
  test("drift reports differences, refresh saves them in the state, up reverts them", async () => {
    ws.plan({
      things: [
        { name: "a", args: { size: 1 } },
        { name: "b" },
        { name: "c", from: { ref: ["b", "serial"] } },
      ],
    });
    const stack = await ws.open();
    await ws.up();
    expect((await stack.drift()).summary).toMatchObject({ same: 4, update: 0, delete: 0 });
    ws.tamper("a", { size: 9 });
    ws.tamper("b");
    const drift = await stack.drift();
    expect(drift.summary).toMatchObject({ same: 2, update: 1, delete: 1 });
    expect(drift.steps.find((step) => step.name === "a")?.fields).toEqual([{ path: "size", old: 1, new: 9 }]);
    expect(ws.names()).toContain("b");
    ws.tamper("c", { color: "red" });
    const extra = (await stack.drift()).steps.find((step) => step.name === "c");
    expect(extra?.fields).toEqual([{ path: "color", new: "red" }]);
    ws.tamper("c", { color: undefined });

    await stack.refresh();
    expect(ws.names()).not.toContain("b");
    // `refresh` has removed the deleted object from the state, so its outputs are unknown until up creates it again.
    // Dependents may therefore need an update.
    expect((await stack.preview()).summary).toMatchObject({ create: 1, update: 2, same: 1 });
    expect((await ws.up()).summary).toMatchObject({ create: 1, update: 1 });
    expect((await stack.drift()).summary).toMatchObject({ update: 0, delete: 0 });
  });
});

describe("programs", () => {
  test.each(["typescript", "esm"])("run from the %s fixture", async (fixture) => {
    const other = new Workspace(fixture);
    try {
      expect((await other.up()).outputs).toEqual({ length: 11 });
      expect((await other.up()).summary).toMatchObject({ same: 2 });
    } finally {
      other.remove();
    }
  });

  test("support provider functions that the SDK serializes, and report the file of a function that it cannot serialize", {
    tags: ["long"],
  }, async () => {
    ws.plan({ serialized: "plain" });
    await ws.up();
    expect(readFileSync(join(ws.cloud, "serialized.log"), "utf8")).toBe("serialized ran");
    ws.plan({ serialized: "native" });
    const error = (await ws.up().catch((e: unknown) => e)) as ProgramError;
    expect(JSON.stringify(error.result?.diagnostics)).toMatch(/index\.js\(\d+,\d+\).*native code function/s);
  });

  test("that throw an error delete no object, and the error contains the location", async () => {
    ws.plan({ things: [{ name: "a" }] });
    await ws.up();
    ws.plan({ throw: "out of luck" });
    const error = (await ws.up().catch((e: unknown) => e)) as ProgramError;
    expect(error.code).toBe("program");
    expect(JSON.stringify(error.result?.diagnostics)).toMatch(/index\.js:\d+:\d+: out of luck \[program\]/);
    expect(ws.objects()).toEqual(["a"]);
  });

  test("with an input that never resolves fail, and report the location on request", async () => {
    ws.plan({ endless: "waiting" });
    const diagnostics = async () => {
      const error = (await ws.up().catch((e: unknown) => e)) as ProgramError;
      expect(error.code).toBe("program");
      return JSON.stringify(error.result?.diagnostics);
    };
    const usual = await diagnostics();
    expect(usual).toMatch(/"waiting\\" .* was waiting for the value of its input property \\"label\\"/);
    expect(usual).not.toContain("STACK_TRACE");
    ws.env.PULUMI_DEBUG_PROMISE_LEAKS = "true";
    expect(await diagnostics()).toMatch(/STACK_TRACE.*index\.js:\d+:\d+/s);
  });

  test("can register more resources concurrently than the engine processes concurrently", {
    tags: ["long"],
  }, async () => {
    const count = 150;
    const things: Thing[] = Array.from({ length: count }, (_, index) => ({
      name: `thing-${index}`,
      group: `group-${index % 3}`,
    }));
    const last: Thing = { name: "last", from: { ref: [`thing-${count - 1}`, "serial"] } };
    ws.plan({ things: [...things, last] });
    expect((await ws.up()).summary).toMatchObject({ create: count + 5 });
    expect(ws.calls().at(-1)).toBe("created last");
  });
});
