import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UpdateFailedError } from "../../provider/engine/index.ts";
import { UNKNOWN } from "../../provider/engineMarks.ts";
import { UrnPatterns } from "../../provider/urn.ts";
import { engines } from "../support/gatehouse.ts";
import { urn } from "./comparison/scenario.ts";
import { testWorkspace } from "./workspace.ts";

const ws = testWorkspace();

describe("patterns of URNs", () => {
  const name = fc.stringMatching(/^[a-zA-Z0-9_.$-]{1,8}$/);

  test("match within one part of the URN with *, across several parts with **, and have no other wildcards", () => {
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(new UrnPatterns([urn(a)]).has(urn(b))).toBe(a === b);
        expect(new UrnPatterns([`${urn(a)}*`]).has(urn(b))).toBe(b.startsWith(a));
        expect(new UrnPatterns([`**::${a}`]).has(urn(b))).toBe(a === b);
        expect(new UrnPatterns([`*::${a}`]).has(urn(b))).toBe(false);
      }),
    );
    expect(new UrnPatterns().empty).toBe(true);
  });
});

const two = (size: number) => ({
  things: [
    { name: "a", args: { size } },
    { name: "b", args: { size }, from: { ref: ["a", "id"] as [string, string] } },
  ],
});

describe.each(engines)("gatehouse with targets: $label", ({ engine, available }) => {
  const gatehouse = (command: string, ...args: string[]) =>
    ws.command(command, ws.folder, "--stack", "test", "--engine", engine, ...args);

  test.skipIf(!available)("restricts all commands to the targets", { tags: ["long"] }, async () => {
    ws.plan(two(1));
    const missing = await gatehouse("up", "--yes", "--target", urn("b"));
    expect(missing.code).toBe(1);
    expect(missing.output).toContain(urn("a"));
    expect(ws.calls()).toEqual([]);
    await ws.up();
    ws.calls();

    ws.plan(two(2));
    const preview = await gatehouse("preview", "-t", "**::b");
    expect(preview.output).toContain("1 to update");
    expect((await gatehouse("up", "--yes", "--skip-preview", "--target", urn("a"))).output).toContain(
      "1 updated",
    );
    expect(ws.calls()).toEqual(["update a"]);
    expect((await gatehouse("up", "--yes", "--exclude", urn("b"))).output).not.toContain("1 updated");
    expect(
      (await gatehouse("up", "--yes", "--skip-preview", "--replace", urn("b"), "--target", urn("b"))).output,
    ).toContain("1 replaced");
    expect(ws.calls()).toEqual(["create b", "created b", "delete b", "deleted b"]);

    ws.tamper("a", { size: 7 });
    ws.tamper("b", { size: 8 });
    const drift = await gatehouse("drift", "--target", urn("a"));
    expect(drift.code).toBe(2);
    expect(drift.output).toContain("size is 7 (declared 2)");
    expect(drift.output).not.toContain("size is 8");
    expect((await gatehouse("drift", "--target", urn("missing"))).code).toBe(1);
    expect((await gatehouse("refresh", "--yes", "--target", urn("a"))).output).toContain("1 updated");

    const needed = await gatehouse("destroy", "--yes", "--target", urn("a"));
    expect(needed.code).toBe(1);
    expect(needed.output).toContain("--target-dependents");
    expect(ws.objects()).toEqual(["a", "b"]);
    expect((await gatehouse("destroy", "--yes", "--exclude", urn("a"))).code).toBe(0);
    expect(ws.objects()).toEqual(["a"]);
    expect(ws.names()).toEqual(["a", "cloud-test", "default"]);
  });

  test.skipIf(!available)("rejects contradictory options", async () => {
    const both = await gatehouse("up", "--yes", "--target", urn("a"), "--exclude", urn("b"));
    expect(both).toMatchObject({ code: 1, output: expect.stringContaining("cannot be combined") });
    const alone = await gatehouse("up", "--yes", "--target-dependents");
    expect(alone).toMatchObject({ code: 1, output: expect.stringContaining("needs a --target") });
  });

  test.skipIf(!available)("limits creations, updates, reads and deletions with --parallel", async () => {
    const limit = 3;
    const names = Array.from({ length: 6 }, (_, i) => `t${i}`);
    const plan = (size: number, together: number) =>
      ws.plan({
        things: names.map((name) => ({ name, args: { size, together, slow: 150, slowRead: 150 } })),
      });
    const most = (): number => {
      let running = 0;
      let highest = 0;
      for (const record of ws.records()) {
        running += "kind" in record ? 1 : -1;
        highest = Math.max(highest, running);
      }
      return highest;
    };
    plan(limit, limit);
    await gatehouse("up", "--yes", "--skip-preview", "--parallel", String(limit));
    expect(most()).toBe(limit);
    plan(limit + 10, limit);
    await gatehouse("up", "--yes", "--skip-preview", "--parallel", String(limit));
    expect(most()).toBe(limit);
    await gatehouse("drift", "--parallel", String(limit));
    expect(most()).toBe(limit);
    await gatehouse("destroy", "--yes", "--parallel", String(limit));
    expect(most()).toBe(limit);
  });
});

describe("an omitted new resource", () => {
  test.each([
    ["--target", { target: [urn("b")] }],
    ["--exclude", { exclude: [urn("a")] }],
  ])("by %s is reported by its dependents, with the remedy", async (_flag, options) => {
    ws.plan(two(1));
    const error = await (await ws.open()).up(options).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(UpdateFailedError);
    const failed = (error as UpdateFailedError).result.steps.find((step) => step.name === "b");
    expect(failed?.error).toContain(`it depends on ${urn("a")}, which does not exist yet`);
    expect(failed?.error).toContain("add it with --target");
    expect(ws.calls()).toEqual([]);
  });

  test("leaves no placeholders for its outputs in the state", { tags: ["long"] }, async () => {
    ws.plan({ ...two(1), outputs: { known: ["a", "serial"], later: ["b", "serial"] } });
    expect((await ws.up({ target: [urn("a")] })).outputs).toEqual({ known: expect.any(Number) });
    expect(JSON.stringify(ws.stored())).not.toContain(UNKNOWN);
    expect((await ws.up()).outputs).toMatchObject({ later: expect.any(Number) });
  });
});
