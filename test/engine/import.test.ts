import { describe, expect, test } from "vitest";
import { UpdateFailedError } from "../../provider/engine/index.ts";
import { findOnPath } from "../../provider/engine/processes.ts";
import { type Thing, testWorkspace } from "./workspace.ts";

const ws = testWorkspace();

/** Declares resource `a` with the resource option `import` and this object id. */
function declare(id: string, args: Record<string, unknown>, options: Thing["options"] = {}): void {
  ws.plan({ things: [{ name: "a", args, options: { import: id, ...options } }] });
}

/** Runs up and returns the error message of resource `a`. */
async function failure(): Promise<string | undefined> {
  const error = await (await ws.open()).up().catch((e: unknown) => e);
  expect(error).toBeInstanceOf(UpdateFailedError);
  return (error as UpdateFailedError).result.steps.find((step) => step.name === "a")?.error;
}

const stored = () => ws.stored().resources?.find((resource) => resource.urn.endsWith("::a"));

describe("the option import, with the embedded engine", () => {
  test("imports an object without changes, and then manages it like a created object", async () => {
    ws.place("x-1", { label: "x", size: 1 });
    ws.plan({
      things: [
        { name: "a", args: { label: "x", size: 1 }, options: { import: "x-1" } },
        { name: "b", from: { ref: ["a", "id"] } },
      ],
      outputs: { serial: ["a", "serial"] },
    });
    const stack = await ws.open();
    const plan = await stack.preview();
    expect(plan.summary).toMatchObject({ import: 1, create: 2 });
    expect(plan.steps.find((step) => step.name === "b")?.fields).toContainEqual({ path: "ref", new: "x-1" });
    expect(ws.names()).toEqual([]);

    const up = await ws.up();
    expect(up.summary).toMatchObject({ import: 1, create: 2 });
    expect(up.outputs).toEqual({ serial: 3 });
    expect(stored()).toMatchObject({
      id: "x-1",
      importID: "x-1",
      inputs: { size: 1 },
      outputs: { serial: 3 },
    });
    expect(ws.calls()).toEqual(["create b", "created b"]);
    expect((await ws.up()).summary).toMatchObject({ import: 0, same: 3 });

    ws.plan({ things: [{ name: "a", args: { label: "x", size: 2 }, options: { import: "x-1" } }] });
    expect((await ws.up()).summary).toMatchObject({ update: 1, delete: 1 });
    ws.plan({ things: [{ name: "a", args: { label: "x", size: 2 } }] });
    expect((await ws.up()).summary).toMatchObject({ same: 2, update: 0 });
    expect(stored()?.importID).toBeUndefined();
    await stack.destroy();
    expect(ws.objects()).toEqual([]);
  });

  test("has no effect on an object that the state already contains", { tags: ["long"] }, async () => {
    ws.plan({ things: [{ name: "a" }] });
    await ws.up();
    declare(stored()?.id ?? "", {});
    expect((await ws.up()).summary).toMatchObject({ import: 0, same: 2 });
  });

  test("fails and lists the differences of the object, unless they are ignored", async () => {
    ws.place("x-1", { label: "x", size: 1, password: "old" });
    declare("x-1", { label: "x", size: 2, password: "old" });
    const error = await failure();
    expect(error).toContain("size is 1, but 2 in the program");
    expect(error).not.toContain("label is");
    expect(ws.names()).toEqual([]);
    expect(ws.calls()).toEqual([]);
    declare("x-1", { label: "x", size: 2, password: "old" }, { ignoreChanges: ["size"] });
    expect((await ws.up()).summary).toMatchObject({ import: 1 });
    expect(stored()).toMatchObject({ inputs: { size: 1 } });
  });

  test("hides secrets in differences, and keeps imported secrets secret", { tags: ["long"] }, async () => {
    ws.place("x-1", { label: "x", password: "swordfish" });
    const plan = (password: string) =>
      ws.plan({
        things: [
          { name: "a", args: { label: "x", password }, secret: ["password"], options: { import: "x-1" } },
        ],
      });
    plan("marlin-fish");
    const error = await failure();
    expect(error).toContain("password is");
    expect(error).not.toMatch(/swordfish|marlin/);
    plan("swordfish");
    await ws.up();
    expect(JSON.stringify(ws.stored())).not.toContain("swordfish");
  });

  test("fails if the object does not exist or returns no inputs", { tags: ["long"] }, async () => {
    declare("nowhere-1", {});
    expect(await failure()).toContain('no object has the id "nowhere-1"');
    ws.place("a-1", { label: "a", blind: true });
    declare("a-1", {});
    expect(await failure()).toContain("or read returns no inputs");
    expect(ws.names()).toEqual([]);
  });

  test("replaces the object if the id changes, unless the object is protected", {
    tags: ["long"],
  }, async () => {
    ws.plan({ things: [{ name: "a", args: { label: "old" }, options: { protect: true } }] });
    await ws.up();
    ws.place("x-1", { label: "x" });
    ws.calls();
    declare("x-1", { label: "x" }, { protect: true });
    expect(await failure()).toContain("pulumi state unprotect");
    declare("x-1", { label: "x" });
    expect((await ws.up()).summary).toMatchObject({ replace: 1 });
    expect(ws.calls()).toEqual(["delete old", "deleted old"]);
    expect(ws.objects()).toEqual(["x"]);
  });

  test("prevents a later replacement of the object", { tags: ["long"] }, async () => {
    ws.place("x-1", { label: "x" });
    declare("x-1", { label: "x" });
    await ws.up();
    declare("x-1", { label: "y" });
    expect(await failure()).toContain(
      "it is an imported resource, and the run would replace it (because of label)",
    );
    expect(ws.objects()).toEqual(["x"]);
  });
});

const cli = findOnPath("pulumi", process.env);
const reason = cli ? "" : " (skipped: there is no pulumi on the PATH)";

describe.skipIf(!cli)(`the option import, with the Pulumi CLI${reason}`, () => {
  test("fails for dynamic resources, so the documentation recommends the embedded engine", async () => {
    ws.place("x-1", { label: "x" });
    declare("x-1", { label: "x" });
    await expect((await ws.open({ engine: "cli" })).up()).rejects.toBeInstanceOf(UpdateFailedError);
    expect(ws.calls()).toEqual([]);
  });

  test("manages objects that the embedded engine imported", async () => {
    ws.place("x-1", { label: "x" });
    declare("x-1", { label: "x" });
    await ws.up();
    expect((await (await ws.open({ engine: "cli" })).up()).summary).toMatchObject({ same: 2, create: 0 });
    expect(stored()).toMatchObject({ id: "x-1", importID: "x-1" });
  });
});
