import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { pino } from "pino";
import { expect, it } from "vitest";
import type { SessionEntries } from "../../server/features/sessions/addEntries.ts";
import { SessionWriter } from "../../server/gateway/ssh/SessionRecorder.ts";

const SIZE = { width: 80, height: 24 };
const silent = pino({ level: "silent" });

const action = fc.oneof(
  fc.record({
    kind: fc.constant("output" as const),
    seat: fc.nat(1),
    length: fc.integer({ min: 1, max: 40_000 }),
  }),
  fc.record({ kind: fc.constant("event" as const), seat: fc.nat(1), length: fc.nat(50) }),
);

it("writes each session completely and in order, in batches of limited size", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.nat(2), action), { maxLength: 40 }), async (actions) => {
      const batches: (readonly SessionEntries[])[] = [];
      const writer = new SessionWriter(async (sessions) => {
        await turn();
        batches.push(sessions);
        return [];
      }, silent);
      const sessions = [0, 1, 2].map((index) => writer.open(String(index), true));
      for (const session of sessions) session.begun();
      const expected = ["", "", ""];
      let next = 0;
      for (const [index, { kind, seat, length }] of actions) {
        next += 1;
        if (kind === "event") {
          sessions[index]?.event(seat, `e${next}`, { text: "x".repeat(length) });
          expected[index] += `[e${next}]`;
        } else {
          const letter = String.fromCharCode(97 + (next % 26));
          await sessions[index]?.record(seat, "stdout", Buffer.from(letter.repeat(length)), SIZE);
          expected[index] += letter.repeat(length);
        }
      }
      await Promise.all(sessions.map((session) => session.finish()));
      const written = ["", "", ""];
      for (const batch of batches) {
        let characters = 0;
        for (const { uid, entries } of batch) {
          for (const entry of entries) {
            if (entry.kind === "output") characters += entry.text.length;
            if (entry.kind === "output") written[Number(uid)] += entry.text;
            else if (entry.kind === "event") written[Number(uid)] += `[${entry.type}]`;
          }
        }
        // A batch contains at least one entry of a session, even if the entry exceeds the limit.
        expect(characters).toBeLessThanOrEqual(64 * 1024 + 32_000);
      }
      expect(written).toEqual(expected);
    }),
    { numRuns: 30 },
  );
});

it("keeps only the last of successive terminal sizes, and reports when its buffer is full", async () => {
  const batches: (readonly SessionEntries[])[] = [];
  const writer = new SessionWriter(async (sessions) => {
    batches.push(sessions);
    return [];
  }, silent);
  const session = writer.open("one", false);
  session.begun();
  for (let columns = 1; columns <= 20_000; columns += 1) session.event(0, "window-change", { columns });
  expect(session.isFull).toBe(false);
  await session.finish();
  expect(batches.flat().flatMap(({ entries }) => entries)).toMatchObject([{ data: { columns: 20_000 } }]);
  for (let count = 0; count < 256; count += 1) session.event(count, "exec", {});
  expect(session.isFull).toBe(true);
  await session.room();
  expect(session.isFull).toBe(false);
  await session.finish();
});

it("stops recording the output of a session at the limit, and still records events", async () => {
  const kinds: string[] = [];
  const writer = new SessionWriter(async (sessions) => {
    for (const { entries } of sessions) kinds.push(...entries.map(({ kind }) => kind));
    return ["one"];
  }, silent);
  const session = writer.open("one", true);
  session.begun();
  await session.record(0, "stdout", Buffer.from("first"), SIZE);
  await session.finish();
  expect(session.recording).toBe(false);
  await session.record(0, "stdout", Buffer.from("second"), SIZE);
  session.event(0, "exit-status", { status: 0 });
  await session.finish();
  expect(kinds).toEqual(["output", "event"]);
});

it("continues after an error of the database", async () => {
  const writer = new SessionWriter(() => Promise.reject(new Error("the database is unavailable")), silent);
  const session = writer.open("one", true);
  session.begun();
  for (let count = 0; count < 100; count += 1)
    await session.record(0, "stdout", Buffer.alloc(16_000, "x"), SIZE);
  await session.finish();
});

it("writes the entries of a session only after the session has begun", async () => {
  const kinds: string[] = [];
  const writer = new SessionWriter(async (sessions) => {
    for (const { entries } of sessions) kinds.push(...entries.map(({ kind }) => kind));
    return [];
  }, silent);
  const session = writer.open("one", true);
  session.describe("term", "xterm");
  session.event(0, "pty-req", {});
  const other = writer.open("other", true);
  other.begun();
  other.authenticated();
  await other.finish();
  expect(kinds).toEqual(["authenticated"]);
  session.begun();
  await session.finish();
  expect(kinds).toEqual(["authenticated", "described", "event"]);
});

it("discards the entries of a session that never begins", async () => {
  const writer = new SessionWriter(() => Promise.reject(new Error("unexpected write")), silent);
  const session = writer.open("one", true);
  for (let count = 0; count < 256; count += 1) session.event(count, "exec", {});
  expect(session.isFull).toBe(true);
  const writable = session.room();
  await session.finish();
  await writable;
  expect(session.isDirty).toBe(false);
});
