import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { engines } from "../support/gatehouse.ts";
import { type StoredState, Workspace } from "./workspace.ts";

// Every run starts processes of its own, which takes long where all cores are busy.
vi.setConfig({ testTimeout: 180_000 });

let ws: Workspace;
beforeEach(async () => {
  ws = new Workspace();
  ws.plan({ things: [{ name: "a", args: { size: 1 } }] });
  await ws.up();
});
afterEach(() => ws.remove());

/** Notes operations as a run does that is killed meanwhile; of a thing that is not in the state, it is a creation. */
function leave(...operations: [type: string, name: string][]): void {
  const path = join(ws.state, ".pulumi/stacks/cloud/test.json");
  const file = JSON.parse(readFileSync(path, "utf8")) as { checkpoint: { latest: StoredState } };
  const { latest } = file.checkpoint;
  latest.pending_operations = operations.map(([type, name]) => {
    const known = latest.resources?.find(({ urn }) => urn.endsWith(`::${name}`));
    const {
      id: _id,
      outputs: _outputs,
      ...made
    } = latest.resources?.find(({ urn }) => urn.endsWith("::a")) ?? {
      urn: "",
    };
    return { type, resource: known ?? { ...made, urn: made.urn.replace(/::a$/, `::${name}`) } };
  });
  writeFileSync(path, JSON.stringify(file));
}
const left = () =>
  (ws.stored().pending_operations ?? []).map(
    ({ type, resource }) => `${type} ${resource.urn.split("::")[3]}`,
  );
const stored = () => ws.stored().resources?.find(({ urn }) => urn.endsWith("::a"));

describe.each(engines)(
  "operations that a killed run left in the state, by the $label",
  ({ engine, available }) => {
    const run = async (command: string, ...args: string[]) =>
      (await ws.command(command, ws.folder, "--stack", "test", "--engine", engine, ...args)).output;

    test.runIf(available)("are named by every command, with what to do", async () => {
      for (const command of ["preview", "drift", "refresh", "up", "destroy"]) {
        leave(["updating", "a"], ["creating", "ghost"]);
        const reads = command === "preview" || command === "drift";
        const output = await run(command, ...(reads ? [] : ["--yes"]));
        expect(output.match(/while updating the Thing a/g)).toHaveLength(1);
        expect(output).toMatch(/while updating the Thing a\. .*gatehouse refresh/);
        expect(output.match(/while creating the Thing ghost/g)).toHaveLength(1);
        expect(output).toMatch(
          /while creating the Thing ghost\. .*gatehouse refresh --clear-pending-creates/,
        );
        expect(left()).toEqual(reads ? ["updating a", "creating ghost"] : ["creating ghost"]);
      }
      await run("refresh", "--yes", "--clear-pending-creates");
      expect(left()).toEqual([]);
    });

    test.runIf(available)("are settled by a refresh, which reads their objects", async () => {
      leave(["updating", "a"]);
      ws.tamper("a", { size: 9 });
      await run("refresh", "--yes");
      expect([left(), stored()?.outputs?.size]).toEqual([[], 9]);
      leave(["deleting", "a"]);
      ws.tamper("a");
      await run("refresh", "--yes");
      expect([left(), stored()]).toEqual([[], undefined]);
    });
  },
);

describe("operations that a killed run left in the state, in an up by the embedded engine", {
  tags: ["long"],
}, () => {
  const up = async () => (await ws.open()).up();

  test("are settled by reading their objects, also where a preview finds nothing else to do", async () => {
    leave(["updating", "a"]);
    ws.tamper("a", { size: 9 });
    expect((await up()).summary).toMatchObject({ update: 1 });
    expect([left(), stored()?.outputs?.size]).toEqual([[], 1]);
    leave(["deleting", "a"]);
    ws.tamper("a");
    expect((await up()).summary).toMatchObject({ create: 1 });
    expect([left(), ws.objects()]).toEqual([[], ["a"]]);
    leave(["deleting", "a"]);
    expect((await up()).summary).toMatchObject({ same: 2 });
    expect(left()).toEqual([]);
  });

  test("stay where the object can be neither found nor ruled out, and the way out is named", async () => {
    leave(["updating", "a"]);
    ws.tamper("a", {});
    const object = join(ws.cloud, `${stored()?.id}.json`);
    writeFileSync(object, "not JSON");
    const { diagnostics } = await up();
    expect(left()).toEqual(["updating a"]);
    expect(diagnostics.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/could not be read .*gatehouse refresh --clear-pending-creates/),
    );
    writeFileSync(object, JSON.stringify({ label: "a", size: 1 }));
    await up();
    expect(left()).toEqual([]);
  });

  test("of resources that an up leaves out stay", async () => {
    leave(["updating", "a"]);
    await (await ws.open()).up({ exclude: ["**::a"] });
    expect(left()).toEqual(["updating a"]);
  });

  test("that were creations are settled by the next creation, not by the object that was to be replaced", async () => {
    leave(["creating", "a"], ["creating", "b"]);
    await up();
    expect(left()).toEqual(["creating a", "creating b"]);
    ws.plan({ things: [{ name: "a", args: { label: "z" } }, { name: "b" }] });
    expect((await up()).summary).toMatchObject({ replace: 1, create: 1 });
    expect(left()).toEqual([]);
  });
});
