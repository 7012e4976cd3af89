import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Plan, Result, Step } from "../../provider/engine/index.ts";
import { engines } from "../support/gatehouse.ts";
import { type Thing, Workspace } from "./workspace.ts";

// Every run starts processes of its own, which takes long where all cores are busy.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const SECRETS = ["swordfish-1", "swordfish-2", "swordfish-3", "swordfish-4"];

/** Secrets in every place that one can be in: input, nested, within a list, made from another's, output. */
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
const gone: Thing = { name: "gone", args: { password: "swordfish-4" }, secret: ["password"] };

const before = {
  things: [secretive, ...others, gone],
  outputs: { kept: ["a", "password"] as [string, string] },
};
const after = {
  ...before,
  things: [
    { ...secretive, args: { ...secretive.args, size: 2 } },
    ...others.map((thing) =>
      thing.name === "replaced" ? { ...thing, args: { size: 1, label: "z" } } : thing,
    ),
    { name: "made", from: { ref: ["replaced", "id"] as [string, string] } },
  ],
};

const byName = (plan: Plan): Record<string, Step> =>
  Object.fromEntries(plan.steps.map((step) => [step.name, step]));

const available = engines.filter((engine) => engine.available);

// One life of a stack, looked at in four ways.
describe.each(available)("a plan with values, by the $label", ({ engine }) => {
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

  test("tells what each resource is before and after", () => {
    expect(first.steps.every((step) => step.before === undefined && step.after !== undefined)).toBe(true);
    const steps = byName(changed);
    expect(Object.keys(steps).sort()).toEqual([
      "a",
      "borrows",
      "cloud-test",
      "g",
      "gone",
      "made",
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
    expect(steps.made).toMatchObject({
      op: "create",
      after: { inputs: { label: "made", ref: "[unknown]" } },
    });
    expect(steps.made).not.toHaveProperty("before");
    expect(steps.gone).toMatchObject({
      op: "delete",
      before: { inputs: { label: "gone", password: "[secret]" }, outputs: { password: "[secret]" } },
    });
    expect(steps.gone).not.toHaveProperty("after");
    expect(steps.g).toMatchObject({ before: { outputs: { name: "g" } }, after: { outputs: { name: "g" } } });
    expect(steps["cloud-test"]?.after?.outputs).toEqual({ kept: "[secret]" });
    // The provider's code is nobody's property.
    expect(JSON.stringify(changed)).not.toContain("exports.handler");
  });

  test("holds no secret in clear", () => {
    // What a read brings is as secret as what it replaces.
    expect(byName(read).a?.before?.outputs).toMatchObject({ password: "[secret]", nested: "[secret]" });
    for (const plan of [first, changed, read]) {
      const text = JSON.stringify(plan);
      expect(text).toContain("[secret]");
      for (const secret of [...SECRETS, "swordfish-5", "swordfish-6"]) expect(text).not.toContain(secret);
    }
  });

  test("with a refresh, before is what really is", () => {
    const steps = byName(read);
    expect(steps.same).toMatchObject({
      op: "update",
      before: { outputs: { size: 9 } },
      after: { inputs: { size: 1 }, outputs: { size: 1 } },
    });
    expect(steps.replaced).toMatchObject({ op: "create", after: { inputs: { label: "z" } } });
    expect(steps.replaced).not.toHaveProperty("before");
    // Nothing was written: without the refresh the state is as it was.
    expect(byName(unread).same).toMatchObject({ op: "same", before: { outputs: { size: 1 } } });
  });

  test("is asked for: other results have none", () => {
    for (const step of without.flatMap((result) => result.steps)) {
      expect(step).not.toHaveProperty("before");
      expect(step).not.toHaveProperty("after");
    }
    expect(confirmed?.steps.every((step) => step.after !== undefined)).toBe(true);
  });
});

test("of an import, after is what is there", async () => {
  const ws = new Workspace();
  try {
    ws.place("taken-1", { label: "taken", size: 3 });
    ws.plan({ things: [{ name: "taken", args: { size: 3 }, options: { import: "taken-1" } }] });
    const { taken } = byName(await (await ws.open()).preview({ values: true }));
    expect(taken).toMatchObject({
      op: "import",
      after: { inputs: { label: "taken", size: 3 }, outputs: { serial: 7 } },
    });
    expect(taken).not.toHaveProperty("before");
  } finally {
    ws.remove();
  }
});

test("an old object that waits for its deletion is told apart from the new one", async () => {
  const ws = new Workspace();
  try {
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
  } finally {
    ws.remove();
  }
});
