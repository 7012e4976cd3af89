import fc from "fast-check";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import type {
  EntriesResult,
  SessionEntries,
  SessionEntry,
} from "../../server/features/sessions/addEntries.ts";
import { SessionWriter } from "../../server/gateway/ssh/SessionWriter.ts";

const SIZE = { width: 80, height: 24 };
const silent = pino({ level: "silent" });
const CAPACITY = 64 * 1024 * 1024;
const RECORDED = { recording: true };

/** Returns a writer, and the batches that it has written. */
function collector(resultOf: (session: SessionEntries) => EntriesResult = () => "stored", patience = 60_000) {
  const batches: (readonly SessionEntries[])[] = [];
  const write = async (sessions: readonly SessionEntries[]) => {
    batches.push(sessions);
    return sessions.map(resultOf);
  };
  return { batches, writer: new SessionWriter(write, silent, { capacity: CAPACITY, patience }) };
}

const kindsIn = (batches: readonly (readonly SessionEntries[])[]): string[] =>
  batches.flat().flatMap(({ entries }) => entries.map(({ kind }) => kind));

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
      const { batches, writer } = collector();
      const sessions = [0, 1, 2].map((index) => writer.open(String(index), RECORDED));
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
  const { batches, writer } = collector();
  const session = writer.open("one", { recording: false });
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
  const { batches, writer } = collector(() => "silenced");
  const session = writer.open("one", RECORDED);
  session.begun();
  await session.record(0, "stdout", Buffer.from("first"), SIZE);
  await session.finish();
  expect(session.recording).toBe(false);
  await session.record(0, "stdout", Buffer.from("second"), SIZE);
  session.event(0, "exit-status", { status: 0 });
  await session.finish();
  expect(kindsIn(batches)).toEqual(["output", "event"]);
});

it("writes the entries of a session only after the session has begun", async () => {
  const { batches, writer } = collector();
  const session = writer.open("one", RECORDED);
  session.describe("term", "xterm");
  session.event(0, "pty-req", {});
  const other = writer.open("other", RECORDED);
  other.begun();
  other.authenticated();
  await other.finish();
  expect(kindsIn(batches)).toEqual(["authenticated"]);
  session.begun();
  await session.finish();
  expect(kindsIn(batches)).toEqual(["authenticated", "described", "event"]);
});

it("discards the entries of a session that never begins", async () => {
  const { batches, writer } = collector();
  const session = writer.open("one", RECORDED);
  for (let count = 0; count < 256; count += 1) session.event(count, "exec", {});
  expect(session.isFull).toBe(true);
  const writable = session.room();
  await session.finish();
  await writable;
  expect(session.isDirty).toBe(false);
  expect(batches).toEqual([]);
  expect(writer.waiting).toEqual({ entries: 0, characters: 0 });
});

/** The entries of sessions as the database keeps them: it skips entries that it has stored already. */
class Stored {
  readonly #entries = new Map<string, SessionEntry[]>();
  readonly #counts = new Map<string, number>();

  add({ uid, after, entries }: SessionEntries): void {
    const kept = this.#entries.get(uid) ?? [];
    kept.push(...entries.slice(Math.max(0, (this.#counts.get(uid) ?? 0) - after)));
    this.#entries.set(uid, kept);
    this.#counts.set(uid, after + entries.length);
  }

  of(uid: string): readonly SessionEntry[] {
    return this.#entries.get(uid) ?? [];
  }

  output(uid: string): string {
    return this.of(uid)
      .map((entry) => (entry.kind === "output" ? entry.text : ""))
      .join("");
  }
}

const line = (number: number) => Buffer.from(`line ${number}\n`);
const lines = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}\n`).join("");

describe("a failed write", () => {
  it.each(["before", "after"] as const)(
    "%s its entries are stored is repeated: each entry is stored once",
    async (when) => {
      const stored = new Stored();
      let writes = 0;
      const { writer } = collector((session) => {
        writes += 1;
        const fails = writes % 3 !== 0;
        if (!fails || when === "after") stored.add(session);
        return fails ? "unreachable" : "stored";
      });
      const session = writer.open("one", RECORDED);
      session.begun();
      for (let number = 0; number < 50; number += 1) await session.record(0, "stdout", line(number), SIZE);
      session.event(0, "exit-status", { status: 7 });
      await session.finish();
      expect(stored.output("one")).toBe(lines(50));
      expect(stored.of("one").at(-1)).toMatchObject({ kind: "event", type: "exit-status" });
      expect(writer.takeLost()).toEqual({ gaps: 0, bytes: 0 });
      expect(writer.waiting).toEqual({ entries: 0, characters: 0 });
    },
  );

  it("of a session repeats no entries of other sessions", async () => {
    let fails = true;
    const { batches, writer } = collector(({ uid }) => {
      if (uid !== "failing" || !fails) return "stored";
      fails = false;
      return "busy";
    });
    const sessions = ["failing", "other"].map((uid) => writer.open(uid, RECORDED));
    for (const session of sessions) session.begun();
    for (const session of sessions) await session.record(0, "stdout", line(0), SIZE);
    await Promise.all(sessions.map((session) => session.finish()));
    expect(batches.flat().map(({ uid }) => uid)).toEqual(["failing", "other", "failing"]);
  });

  it("holds back output, counts the entries that are being written, and loses nothing", async () => {
    const stored = new Stored();
    let works = false;
    const { writer } = collector((session) => {
      if (!works) return "unreachable";
      stored.add(session);
      return "stored";
    });
    const session = writer.open("one", RECORDED);
    session.begun();
    let accepted = 0;
    const all = (async () => {
      for (let number = 0; number < 60; number += 1) {
        await session.record(0, "stdout", Buffer.alloc(16_000, 97 + (number % 26)), SIZE);
        accepted += 1;
      }
    })();
    await expect.poll(() => session.isFull && session.isFailing).toBe(true);
    // The queue has 256 Ki characters, including those of the write that fails.
    expect(accepted).toBeLessThanOrEqual(17);
    expect(writer.waiting.characters).toBeLessThan(300_000);
    works = true;
    await all;
    await session.finish();
    expect(stored.output("one")).toHaveLength(60 * 16_000);
    expect(writer.takeLost()).toEqual({ gaps: 0, bytes: 0 });
  });

  it("of an entry that the database rejects leaves a gap, and the other entries are stored", async () => {
    const stored = new Stored();
    const { writer } = collector((session) => {
      if (session.entries.some((entry) => entry.kind === "event" && entry.type === "bad")) return "rejected";
      stored.add(session);
      return "stored";
    });
    const session = writer.open("one", RECORDED);
    for (let number = 0; number < 20; number += 1) {
      session.event(3, number === 11 ? "bad" : `event-${number}`, {});
    }
    session.begun();
    await session.finish();
    const kept = stored.of("one");
    expect(kept.filter(({ kind }) => kind === "event")).toHaveLength(19);
    expect(kept.filter(({ kind }) => kind === "gap")).toMatchObject([{ seat: 3, entries: 1, bytes: 0 }]);
  });
});

describe("a session that cannot be recorded for too long", () => {
  const outage = () => {
    const stored = new Stored();
    const state = { works: false };
    const { writer } = collector((session) => {
      if (!state.works) return "unwritable";
      stored.add(session);
      return "stored";
    }, 300);
    return { stored, state, writer };
  };

  it("continues, and its record gets a gap with the number of lost bytes", async () => {
    const { stored, state, writer } = outage();
    const session = writer.open("one", RECORDED);
    session.begun();
    const chunks = 40;
    for (let number = 0; number < chunks; number += 1) {
      await session.record(2, "stdout", Buffer.alloc(16_000, "x"), SIZE);
    }
    session.event(2, "exit-status", { status: 0 });
    const lost = writer.takeLost();
    expect(lost).toEqual({ gaps: 1, bytes: expect.any(Number) });
    expect(lost.bytes).toBeGreaterThan(0);
    state.works = true;
    await session.finish();
    const kept = stored.of("one");
    const gap = kept.find(({ kind }) => kind === "gap");
    expect(gap).toMatchObject({ seat: 2, bytes: lost.bytes, size: SIZE });
    expect(stored.output("one").length + lost.bytes).toBe(chunks * 16_000);
    expect(kept.at(-1)).toMatchObject({ kind: "event", type: "exit-status" });
    // The next output is recorded again.
    await session.record(2, "stdout", line(1), SIZE);
    await session.finish();
    expect(stored.output("one")).toMatch(/line 1\n$/);
  });

  it("has a bounded queue, whatever its client requests", async () => {
    const { stored, state, writer } = outage();
    let wasReported = false;
    const session = writer.open("one", { ...RECORDED, onRecordFailure: () => (wasReported = true) });
    session.begun();
    session.event(0, "shell", {});
    await expect.poll(() => wasReported).toBe(true);
    for (let number = 0; number < 5_000; number += 1) session.event(number, "direct-tcpip", {});
    expect(session.waiting.entries).toBeLessThan(1_000);
    state.works = true;
    await session.finish();
    const gaps = stored.of("one").flatMap((entry) => (entry.kind === "gap" ? [entry.entries] : []));
    const events = stored.of("one").filter(({ kind }) => kind === "event").length;
    expect(gaps.reduce((sum, entries) => sum + entries, events)).toBe(5_001);
  });

  it("that has ended loses its output if all sessions together use too much memory", async () => {
    let works = false;
    const stored = new Stored();
    const write = async (sessions: readonly SessionEntries[]) =>
      sessions.map((session): EntriesResult => {
        if (!works) return "unwritable";
        stored.add(session);
        return "stored";
      });
    const writer = new SessionWriter(write, silent, { capacity: 100_000, patience: 100 });
    const sessions = ["0", "1", "2"].map((uid) => writer.open(uid, RECORDED));
    for (const session of sessions) session.begun();
    // Output of a crowded writer waits until the sessions are overdue.
    await Promise.all(
      sessions.map((session) => session.record(0, "stdout", Buffer.alloc(60_000, "x"), SIZE)),
    );
    const ended = sessions.map((session) => session.finish());
    await expect.poll(() => writer.waiting.characters).toBeLessThan(150_000);
    works = true;
    await Promise.all(ended);
    const { gaps, bytes } = writer.takeLost();
    expect(gaps).toBeGreaterThan(0);
    const output = sessions.reduce((sum, { uid }) => sum + stored.output(uid).length, 0);
    expect(output + bytes).toBe(180_000);
  });
});
