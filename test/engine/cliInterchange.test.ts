import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findOnPath, type Result } from "../../provider/engine/index.ts";
import { testWorkspace, until } from "./workspace.ts";

const cli = findOnPath("pulumi", process.env);
const reason = cli ? "" : " (skipped: there is no pulumi on the PATH)";

describe.skipIf(!cli)(
  `one stack with alternating runs of the Pulumi CLI and the embedded engine${reason}`,
  () => {
    const ws = testWorkspace();

    const pulumi = (...args: string[]): string =>
      execFileSync("pulumi", args, { cwd: ws.folder, env: ws.env, encoding: "utf8" });
    const essence = (result: Result) =>
      result.steps
        .map(({ op, name, fields, replaceKeys }) => ({ op, name, fields, replaceKeys }))
        .sort((a, b) => a.name.localeCompare(b.name));

    test("each engine can use a state of the other engine, and both report the same changes", {
      timeout: 240_000,
    }, async () => {
      const things = (size: number, label: string) => ({
        things: [
          { name: "a", args: { size, label, password: "swordfish" }, secret: ["password"] },
          { name: "b", from: { ref: ["a", "serial"] as [string, string] }, group: "g" },
          { name: "c", options: { dependsOn: ["a"], protect: false } },
        ],
        outputs: {
          serial: ["a", "serial"] as [string, string],
          password: ["a", "password"] as [string, string],
        },
        config: "plain",
        secretConfig: "hidden",
      });
      pulumi("stack", "init", "test");
      pulumi("config", "set", "plain", "5", "--stack", "test");
      pulumi("config", "set", "--secret", "hidden", "swordfish", "--stack", "test");
      const embedded = await ws.open();
      const byCli = await ws.open({ engine: "cli" });

      ws.plan(things(1, "a"));
      expect(essence(await byCli.preview())).toEqual(essence(await embedded.preview()));
      const first = await embedded.up();
      expect(first.outputs).toEqual({
        serial: 8,
        password: "[secret]",
        config: "5",
        secretConfig: "[secret]",
      });
      // The CLI verifies the integrity of the embedded engine's state, and finds no changes.
      const nothing = await byCli.up();
      expect(nothing.summary).toMatchObject({ same: 5, create: 0, update: 0, replace: 0, delete: 0 });
      expect(nothing.outputs).toEqual(first.outputs);

      ws.plan(things(2, "a"));
      expect(essence(await byCli.preview())).toEqual(essence(await embedded.preview()));
      await byCli.up();
      expect((await embedded.up()).summary).toMatchObject({ same: 5, update: 0 });

      ws.plan(things(2, "z"));
      expect(essence(await byCli.preview())).toEqual(essence(await embedded.preview()));
      await embedded.up();
      expect((await byCli.preview()).summary).toMatchObject({ same: 5 });

      ws.tamper("z", { size: 9 });
      ws.tamper("c");
      const drift = essence(await byCli.drift());
      expect(drift).toEqual(essence(await embedded.drift()));
      expect(drift.map((step) => step.op).sort()).toEqual(["delete", "same", "same", "same", "update"]);
      await byCli.refresh();
      expect((await embedded.up()).summary).toMatchObject({ create: 1, update: 1 });
      expect(pulumi("stack", "output", "--show-secrets", "--json", "--stack", "test")).toContain("swordfish");
      expect(JSON.parse(pulumi("stack", "history", "--json", "--stack", "test"))).toHaveLength(6);
      await byCli.destroy();
      expect(ws.objects()).toEqual([]);
      expect((await embedded.destroy()).summary).toMatchObject({ delete: 0 });
    });

    test("a lock or journal of the embedded engine blocks the CLI", async () => {
      ws.plan({ things: [{ name: "a", args: { slow: 30_000 } }] });
      const run = ws.gatehouse("up", ws.folder, "--yes", "--stack", "test", "--engine", "embedded");
      await until(() => ws.callLog().includes("create a"));
      run.kill("SIGKILL");
      await run.done;
      writeFileSync(join(ws.root, "plan.json"), "{}");
      expect(() => pulumi("up", "--yes", "--stack", "test")).toThrow(/currently locked/);
      await (await ws.open()).preview();
      pulumi("up", "--yes", "--stack", "test");
    });
  },
);
