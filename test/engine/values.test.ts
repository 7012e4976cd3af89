import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Plan, Result, Step } from "../../provider/engine/index.ts";
import { engines } from "../support/gatehouse.ts";
import { type Thing, testWorkspace, Workspace } from "./workspace.ts";

// Every run starts its own processes, which is slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const SECRETS = ["swordfish-1", "swordfish-2", "swordfish-3", "swordfish-4"];

/** A resource with secrets in every possible position: an input, a nested object, a list and an output. */
const secretive: Thing = {
  name: "a",
  args: {
    size: 1,
    password: "swordfish-1",
    nested: { pin: "swordfish-2", list: [{ deep: "swordfish-3" }] },
  },
  secret: ["password", "nested"],
  options: { additionalSecretOutputs: ["serial"] },
};
const others: Thing[] = [
  { name: "same", args: { size: 1 }, group: "g" },
  { name: "replaced", args: { size: 1 } },
  { name: "borrows", from: { ref: ["a", "password"] } },
];
const deleted: Thing = { name: "deleted", args: { password: "swordfish-4" }, secret: ["password"] };

const before = {
  things: [secretive, ...others, deleted],
  outputs: { kept: ["a", "password"] as [string, string] },
};
const after = {
  ...before,
  things: [
    { ...secretive, args: { ...secretive.args, size: 2 } },
    ...others.map((thing) =>
      thing.name === "replaced" ? { ...thing, args: { size: 1, label: "z" } } : thing,
    ),
    { name: "created", from: { ref: ["replaced", "id"] as [string, string] } },
  ],
};

const byName = (plan: Plan): Record<string, Step> =>
  Object.fromEntries(plan.steps.map((step) => [step.name, step]));

const available = engines.filter((engine) => engine.available);

// All tests of this block check plans of the same stack.
describe.each(available)("a plan with values, with the $label", ({ engine }) => {
  let ws: Workspace;
  let first: Plan;
  let confirmed: Plan | undefined;
  let without: Result[];
  let changed: Plan;
  let read: Plan;
  let unread: Plan;
  beforeAll(async () => {
    ws = new Workspace();
    const stack = await ws.open({ engine });
    ws.plan(before);
    first = await stack.preview({ values: true });
    const confirm = async (plan: Plan): Promise<boolean> => {
      confirmed = plan;
      return true;
    };
    without = [await stack.up({ values: true, confirm }), await stack.preview(), await stack.drift()];
    ws.plan(after);
    changed = await stack.preview({ values: true });
    ws.tamper("same", { size: 9 });
    ws.tamper("replaced");
    ws.tamper("a", { password: "swordfish-5", nested: { pin: "swordfish-6" } });
    read = await stack.preview({ values: true, refresh: true });
    unread = await stack.preview({ values: true });
  });
  afterAll(() => ws.remove());

  test("contains the values of each resource before and after the change", () => {
    expect(first.steps.every((step) => step.before === undefined && step.after !== undefined)).toBe(true);
    const steps = byName(changed);
    expect(Object.keys(steps).sort()).toEqual([
      "a",
      "borrows",
      "cloud-test",
      "created",
      "deleted",
      "g",
      "replaced",
      "same",
    ]);
    const hidden = { label: "a", password: "[secret]", nested: "[secret]" };
    expect(steps.a).toMatchObject({
      op: "update",
      before: { inputs: { ...hidden, size: 1 }, outputs: { ...hidden, size: 1, serial: "[secret]" } },
      after: { inputs: { ...hidden, size: 2 }, outputs: { ...hidden, size: 2 } },
    });
    expect(steps.a?.after?.outputs).not.toHaveProperty("serial");
    const same = { inputs: { label: "same", size: 1 }, outputs: { label: "same", size: 1, serial: 11 } };
    expect(steps.same).toMatchObject({ op: "same", before: same, after: same });
    expect(steps.replaced).toMatchObject({
      op: "replace",
      before: { inputs: { label: "replaced" }, outputs: { serial: 15 } },
      after: { inputs: { label: "z", size: 1 }, outputs: { label: "z" } },
    });
    expect(steps.borrows?.before?.inputs).toEqual({ label: "borrows", ref: "[secret]" });
    expect(steps.created).toMatchObject({
      op: "create",
      after: { inputs: { label: "created", ref: "[unknown]" } },
    });
    expect(steps.created).not.toHaveProperty("before");
    expect(steps.deleted).toMatchObject({
      op: "delete",
      before: { inputs: { label: "deleted", password: "[secret]" }, outputs: { password: "[secret]" } },
    });
    expect(steps.deleted).not.toHaveProperty("after");
    expect(steps.g).toMatchObject({ before: { outputs: { name: "g" } }, after: { outputs: { name: "g" } } });
    expect(steps["cloud-test"]?.after?.outputs).toEqual({ kept: "[secret]" });
    // A plan's values do not contain the serialized code of the dynamic provider.
    expect(JSON.stringify(changed)).not.toContain("exports.handler");
  });

  test("contains no secret in plaintext", () => {
    // A refresh keeps a value secret if the value in the state is secret.
    expect(byName(read).a?.before?.outputs).toMatchObject({ password: "[secret]", nested: "[secret]" });
    for (const plan of [first, changed, read]) {
      const text = JSON.stringify(plan);
      expect(text).toContain("[secret]");
      for (const secret of [...SECRETS, "swordfish-5", "swordfish-6"]) expect(text).not.toContain(secret);
    }
  });

  test("has the live values as `before` after a refresh", () => {
    const steps = byName(read);
    expect(steps.same).toMatchObject({
      op: "update",
      before: { outputs: { size: 9 } },
      after: { inputs: { size: 1 }, outputs: { size: 1 } },
    });
    expect(steps.replaced).toMatchObject({ op: "create", after: { inputs: { label: "z" } } });
    expect(steps.replaced).not.toHaveProperty("before");
    // The refresh during the preview did not write the state.
    expect(byName(unread).same).toMatchObject({ op: "same", before: { outputs: { size: 1 } } });
  });

  test("contains values only on request", () => {
    for (const step of without.flatMap((result) => result.steps)) {
      expect(step).not.toHaveProperty("before");
      expect(step).not.toHaveProperty("after");
    }
    expect(confirmed?.steps.every((step) => step.after !== undefined)).toBe(true);
  });
});

describe("a plan of the embedded engine with values", () => {
  const ws = testWorkspace();

  test("of an import has the live values as `after`", async () => {
    ws.place("existing-1", { label: "existing", size: 3 });
    ws.plan({ things: [{ name: "existing", args: { size: 3 }, options: { import: "existing-1" } }] });
    const { existing } = byName(await (await ws.open()).preview({ values: true }));
    expect(existing).toMatchObject({
      op: "import",
      after: { inputs: { label: "existing", size: 3 }, outputs: { serial: 10 } },
    });
    expect(existing).not.toHaveProperty("before");
  });

  test("has a separate step for a pending deletion of an old object", async () => {
    const stack = await ws.open();
    ws.plan({ things: [{ name: "a", args: { fail: "delete" } }] });
    await ws.up();
    ws.plan({ things: [{ name: "a", args: { label: "z" } }] });
    await expect(ws.up()).rejects.toMatchObject({ code: "failed" });
    const { steps } = await stack.preview({ values: true });
    const labels = steps
      .filter((step) => step.name === "a")
      .map((step) => [step.op, step.before?.inputs.label, step.after?.inputs.label]);
    expect(labels).toEqual([
      ["same", "z", "z"],
      ["delete", "a", undefined],
    ]);
  });
});
