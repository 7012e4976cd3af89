import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { describeEngines } from "../support/gatehouse.ts";
import { type StoredState, testWorkspace } from "./workspace.ts";

const ws = testWorkspace();
beforeEach(async () => {
  ws.plan({ things: [{ name: "a", args: { size: 1 } }] });
  await ws.up();
});

/**
 * Adds pending operations to the state, as after a killed run. If the state does not contain the resource, the
 * operation is a create.
 */
function addPending(...operations: [type: string, name: string][]): void {
  const path = join(ws.state, ".pulumi/stacks/cloud/test.json");
  const file = JSON.parse(readFileSync(path, "utf8")) as { checkpoint: { latest: StoredState } };
  const { latest } = file.checkpoint;
  latest.pending_operations = operations.map(([type, name]) => {
    const known = latest.resources?.find(({ urn }) => urn.endsWith(`::${name}`));
    const {
      id: _id,
      outputs: _outputs,
      ...resource
    } = latest.resources?.find(({ urn }) => urn.endsWith("::a")) ?? {
      urn: "",
    };
    return { type, resource: known ?? { ...resource, urn: resource.urn.replace(/::a$/, `::${name}`) } };
  });
  writeFileSync(path, JSON.stringify(file));
}
const pending = () =>
  (ws.stored().pending_operations ?? []).map(
    ({ type, resource }) => `${type} ${resource.urn.split("::")[3]}`,
  );
const stored = () => ws.stored().resources?.find(({ urn }) => urn.endsWith("::a"));

describeEngines("pending operations of a killed run", {}, (engine) => {
  const run = async (command: string, ...args: string[]) =>
    (await ws.command(command, ws.folder, "--stack", "test", "--engine", engine, ...args)).output;

  test("are reported by every command, together with the remedy", { tags: ["long"] }, async () => {
    for (const command of ["preview", "drift", "refresh", "up", "destroy"]) {
      addPending(["updating", "a"], ["creating", "ghost"]);
      const reads = command === "preview" || command === "drift";
      const output = await run(command, ...(reads ? [] : ["--yes"]));
      expect(output.match(/while updating the Thing a/g)).toHaveLength(1);
      expect(output).toMatch(/while updating the Thing a\. .*gatehouse refresh/);
      expect(output.match(/while creating the Thing ghost/g)).toHaveLength(1);
      expect(output).toMatch(/while creating the Thing ghost\. .*gatehouse refresh --clear-pending-creates/);
      expect(pending()).toEqual(reads ? ["updating a", "creating ghost"] : ["creating ghost"]);
    }
    await run("refresh", "--yes", "--clear-pending-creates");
    expect(pending()).toEqual([]);
  });

  test("are resolved by a refresh, which reads their objects", { tags: ["long"] }, async () => {
    addPending(["updating", "a"]);
    ws.tamper("a", { size: 9 });
    await run("refresh", "--yes");
    expect([pending(), stored()?.outputs?.size]).toEqual([[], 9]);
    addPending(["deleting", "a"]);
    ws.tamper("a");
    await run("refresh", "--yes");
    expect([pending(), stored()]).toEqual([[], undefined]);
  });
});

describe("pending operations of a killed run, in an up of the embedded engine", {
  tags: ["long"],
}, () => {
  const up = async () => (await ws.open()).up();

  test("are resolved by reads of their objects, even without other changes", async () => {
    addPending(["updating", "a"]);
    ws.tamper("a", { size: 9 });
    expect((await up()).summary).toMatchObject({ update: 1 });
    expect([pending(), stored()?.outputs?.size]).toEqual([[], 1]);
    addPending(["deleting", "a"]);
    ws.tamper("a");
    expect((await up()).summary).toMatchObject({ create: 1 });
    expect([pending(), ws.objects()]).toEqual([[], ["a"]]);
    addPending(["deleting", "a"]);
    expect((await up()).summary).toMatchObject({ same: 2 });
    expect(pending()).toEqual([]);
  });

  test("stay if the object cannot be read, and the remedy is reported", async () => {
    addPending(["updating", "a"]);
    ws.tamper("a", {});
    const object = join(ws.cloud, `${stored()?.id}.json`);
    writeFileSync(object, "not JSON");
    const { diagnostics } = await up();
    expect(pending()).toEqual(["updating a"]);
    expect(diagnostics.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/could not be read .*gatehouse refresh --clear-pending-creates/),
    );
    writeFileSync(object, JSON.stringify({ label: "a", size: 1 }));
    await up();
    expect(pending()).toEqual([]);
  });

  test("stay pending if their resources are excluded", async () => {
    addPending(["updating", "a"]);
    await (await ws.open()).up({ exclude: ["**::a"] });
    expect(pending()).toEqual(["updating a"]);
  });

  test("of the type creation are resolved by the next created object, not by the old object of a replacement", async () => {
    addPending(["creating", "a"], ["creating", "b"]);
    await up();
    expect(pending()).toEqual(["creating a", "creating b"]);
    ws.plan({ things: [{ name: "a", args: { label: "z" } }, { name: "b" }] });
    expect((await up()).summary).toMatchObject({ replace: 1, create: 1 });
    expect(pending()).toEqual([]);
  });
});
