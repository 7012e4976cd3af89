import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type DriftNotice,
  driftNotice,
  type NotedRun,
  slackMessage,
} from "../../provider/drift/driftNotice.ts";
import type { DriftReport, ReportedObject } from "../../provider/drift/driftReport.ts";
import { KeptFile, keptPath } from "../../provider/drift/KeptFile.ts";
import { definitionNamed } from "../../provider/namespace/liveObjects.ts";
import { testFolder } from "../support/folder.ts";

const key = (name: string, meaning: readonly string[] = []): ReportedObject => ({
  kind: "PublicKey",
  id: name,
  name,
  tenant: "t",
  effects: meaning,
});

const report = (unmanaged: readonly ReportedObject[]): DriftReport => ({
  engine: "embedded",
  command: "refresh",
  project: "access",
  stack: "prod",
  version: 1 as const,
  ok: true,
  planned: true,
  createdStack: false,
  steps: [],
  diagnostics: [],
  durationMs: 1,
  outputs: {},
  summary: { create: 0, update: 0, replace: 0, delete: 0, same: 3, read: 0, import: 0 } as never,
  drifted: [],
  unmanaged,
  unmanagedMode: "fail",
  notApplied: [],
  namespaces: [],
  notes: [],
  expiring: [],
  expired: [],
  notEvaluated: [],
  acceptance: { program: "", changes: [], exceptions: [] } as never,
});

const run = (
  names: readonly string[],
  more: { notEvaluated?: string[]; repaired?: readonly string[] } = {},
): NotedRun => ({
  found: {
    report: report(names.map((name) => key(name))),
    unmanaged: names.map((name) => ({
      definition: definitionNamed("PublicKey"),
      id: name,
      state: { name },
    })) as never,
    meanings: [],
    notEvaluated: more.notEvaluated ?? [],
  },
  ...(more.repaired && { repaired: report(more.repaired.map((name) => key(name))) }),
});

const noticeOf = (one: NotedRun, last?: string) => driftNotice(one, last) as DriftNotice;

describe("a notice of drift", () => {
  test("contains the fingerprint of its findings, and a unique id", () => {
    const [first, again] = [noticeOf(run(["a", "b"])), noticeOf(run(["b", "a"]))];
    expect(again.fingerprint).toBe(first.fingerprint);
    expect(again.id).not.toBe(first.id);
    expect(driftNotice(run(["a", "b"]), first.fingerprint)).toBeUndefined();
    expect(noticeOf(run(["a"]), first.fingerprint)).toMatchObject({ event: "changed" });
    expect(noticeOf(run([]), first.fingerprint)).toMatchObject({ event: "resolved" });
    expect(driftNotice(run([]), undefined)).toBeUndefined();
  });

  test("reports drift as unclear, and not as resolved, if an object could not be read", () => {
    const before = noticeOf(run(["a"])).fingerprint;
    const unclear = noticeOf(run([], { notEvaluated: ["the namespace lab"] }), before);
    expect(unclear).toMatchObject({ event: "unclear", findings: [], notEvaluated: ["the namespace lab"] });
    expect(unclear.summary).toMatch(/The check is incomplete\.$/);
    expect(
      driftNotice(run([], { notEvaluated: ["the namespace lab"] }), unclear.fingerprint),
    ).toBeUndefined();
    expect(noticeOf(run([]), unclear.fingerprint)).toMatchObject({ event: "resolved", notEvaluated: [] });
    const { text } = slackMessage(run([], { notEvaluated: ["the namespace lab"] }), before) ?? { text: "" };
    expect(text).toContain("Not evaluated: the namespace lab");
  });

  test("counts expired objects in its summary, and is not caused by expired objects", () => {
    const ended = {
      kind: "PublicKey",
      id: "x",
      name: "temp",
      tenant: "t",
      expiresAt: "2026-01-01T00:00:00.000Z",
      status: "by-run" as const,
    };
    const withEnded = ({ found }: NotedRun): NotedRun => ({
      found: { ...found, report: { ...found.report, expired: [ended] } },
    });
    expect(driftNotice(withEnded(run([])), undefined)).toBeUndefined();
    const found = withEnded(run(["a"]));
    expect(noticeOf(found).fingerprint).toBe(noticeOf(run(["a"])).fingerprint);
    expect(noticeOf(found).summary).toContain("1 expired object");
  });

  test("lists a finding as repaired only if it no longer exists", () => {
    const before = noticeOf(run(["a", "b"])).fingerprint;
    expect(noticeOf(run(["b"], { repaired: ["a", "b"] }), before)).toMatchObject({
      event: "changed",
      findings: [expect.stringContaining("PublicKey b")],
      repaired: [expect.stringContaining("PublicKey a")],
    });
    const unrepaired = run(["a", "b"], { repaired: ["a", "b"] });
    expect(driftNotice(unrepaired, before)).toBeUndefined();
  });
});

test("a Slack message mentions no user, has no link and stays within the length limit, whatever the names", () => {
  const part = fc.constantFrom(
    "<!channel>",
    "@here",
    "x@y",
    "`",
    "*",
    "&",
    "https://evil.example",
    "www.evil.example",
    "ü",
    "😀",
    "a",
    "\u202e",
    "\n",
  );
  const name = fc.array(part, { minLength: 1, maxLength: 120, size: "max" }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(
      fc.uniqueArray(name, { minLength: 1, maxLength: 60, size: "max" }),
      fc.nat(40),
      (names, undoneCount) => {
        const undone = Array.from({ length: undoneCount }, (_, index) => `undone ${index}`);
        const { text } = slackMessage(run(names, { repaired: [...names, ...undone] }), undefined) ?? {
          text: "",
        };
        expect(text.length).toBeLessThanOrEqual(1_900);
        expect(text.isWellFormed()).toBe(true);
        expect(text).not.toMatch(/[<>]|@(?!\u200b)|:\/\/(?!\u200b)|www\.(?!\u200b)/);
        for (const line of text.split("\n")) expect((line.match(/`/g) ?? []).length % 2, line).toBe(0);
        expect(text.replaceAll(/&(amp|lt|gt);/g, "")).not.toContain("&");
        const shown = text.split("\n").filter((line) => line.startsWith("• PublicKey")).length;
        const more = [...text.matchAll(/^… and (\d+) more$/gm)].reduce(
          (sum, [, count]) => sum + Number(count),
          0,
        );
        expect(shown + more).toBe(names.length + undoneCount);
      },
    ),
  );
});

describe("the file that a drift run keeps", () => {
  const file = (folder: string) =>
    new KeptFile<{ n: number }>(keptPath(folder, "notified", "acme/access/prod"));

  test("is in the program's folder, and its name contains the last part of the stack's name", async () => {
    const folder = testFolder();
    expect(await file(folder).read()).toBeUndefined();
    await file(folder).write({ n: 1 });
    expect(await file(folder).read()).toEqual({ n: 1 });
    expect(keptPath(folder, "seen", "prod")).toBe(join(folder, "access.seen.prod.json"));
  });

  test("that cannot be read or written is reported with its path", async () => {
    const folder = testFolder();
    for (const text of ["", "null", "{"]) {
      writeFileSync(join(folder, "access.notified.prod.json"), text);
      await expect(file(folder).read()).rejects.toThrow(/^Cannot read .*access\.notified\.prod\.json: /);
    }
    mkdirSync(join(folder, "access.seen.prod.json"));
    const unwritable = new KeptFile(keptPath(folder, "seen", "prod"));
    await expect(unwritable.write({})).rejects.toThrow(/^Cannot write .*access\.seen\.prod\.json: /);
  });
});
