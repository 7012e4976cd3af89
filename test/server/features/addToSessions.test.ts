import { randomBytes } from "node:crypto";
import { DriverAdapterError } from "@prisma/driver-adapter-utils";
import { pino } from "pino";
import { beforeAll, describe, expect, test } from "vitest";
import {
  addToSessions,
  type EntriesResult,
  type SessionEntry,
} from "../../../server/features/sessions/addEntries.ts";
import { beginSession } from "../../../server/features/sessions/entry.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { acceptedDevice, replacing } from "../http/fixtures.ts";
import type { TestUser } from "../http/testApp.ts";

const app = withSharedApp();
const log = () => pino({ level: "silent" });
const SIZE = { width: 80, height: 24 };
let ana: TestUser;
let deviceUid: string;

beforeAll(async () => {
  ana = await app.user("ana", "lab");
  deviceUid = (await acceptedDevice(app, ana, "edge-1")).uid;
  await ana.call("setSessionRecord", { body: { session_record: true } });
});

async function newSession(): Promise<string> {
  const uid = randomBytes(32).toString("hex");
  const login = { username: "root", ipAddress: "198.51.100.1", type: "none", term: "none" };
  await beginSession(app.services, { uid, deviceUid, ...login });
  return uid;
}

/** Number of the entries that were added to each session. */
const counts = new Map<string, number>();

/** Adds further entries to a session. Returns the result. */
async function add(uid: string, entries: readonly SessionEntry[]): Promise<EntriesResult | undefined> {
  const after = counts.get(uid) ?? 0;
  counts.set(uid, after + entries.length);
  const [result] = await addToSessions(app.services, [{ uid, after, entries }], log);
  return result;
}

const output = (text: string): SessionEntry => ({
  kind: "output",
  at: new Date(),
  seat: 0,
  stream: "stdout",
  text,
  size: SIZE,
});
const event = (type: string, data = {}): SessionEntry => ({
  kind: "event",
  seat: 0,
  type,
  at: new Date(),
  data,
});

test("stores the kind of a session, its events and its output in one batch", async () => {
  const [one, other] = [await newSession(), await newSession()];
  const results = await addToSessions(
    app.services,
    [
      {
        uid: one,
        after: 0,
        entries: [
          { kind: "authenticated" },
          { kind: "described", type: "term", term: "xterm\0" },
          event("pty-req", { columns: 80 }),
          output("first \u{1f600}"),
          event("exit-status", { status: 0 }),
          output("\0second"),
        ],
      },
      { uid: other, after: 0, entries: [event("exec", { command: "true" })] },
    ],
    log,
  );
  expect(results).toEqual(["stored", "stored"]);
  counts.set(one, 6);
  await add(one, [output("third"), event("exec", { command: "ls" })]);
  const rows = await app.services.db.session.findMany({
    where: { uid: { in: [one, other] } },
    include: { items: { orderBy: { sequence: "asc" } }, chunks: { orderBy: { sequence: "asc" } } },
  });
  expect(rows.find(({ uid }) => uid === one)).toMatchObject({
    authenticated: true,
    recorded: true,
    type: "term",
    term: "xterm\u{fffd}",
    events: 3,
    records: 3,
    items: [
      { sequence: 1, type: "pty-req", data: '{"columns":80}' },
      { sequence: 2, type: "exit-status" },
      { sequence: 3, type: "exec" },
    ],
    chunks: [{ sequence: 1 }, { sequence: 2 }, { sequence: 3, message: '"third"', width: 80n, height: 24n }],
  });
  expect(rows.find(({ uid }) => uid === other)).toMatchObject({
    authenticated: false,
    recorded: false,
    events: 1,
  });
});

test("keeps commands and exit codes, 1,000 other events, and an event for the omitted ones", async () => {
  const uid = await newSession();
  const many = (count: number, type: string) => Array.from({ length: count }, () => event(type));
  await add(uid, [...many(990, "window-change"), ...many(1_100, "exec")]);
  await add(uid, [...many(20, "window-change"), event("exit-status", { status: 7 })]);
  await add(uid, [...many(20, "signal"), event("exec")]);
  const read = async (eventsAfter: number) =>
    ana.call("getSession", { params: { uid }, query: { events_after: eventsAfter } });
  const { body } = await read(2_000);
  // 1,000 sizes, 1,101 commands, an exit status, and one event for all omitted events.
  expect(body.events.items).toHaveLength(103);
  expect(body.events.items.slice(-3)).toMatchObject([
    { type: "events-capped", data: { kept: 1000, type: "window-change" } },
    { type: "exit-status", data: { status: 7 } },
    { type: "exec" },
  ]);
  expect((await read(0)).body.events.items).toHaveLength(1_000);
});

test("ends a recording at its limit, and continues with events", async () => {
  const uid = await newSession();
  const limit = app.services.settings.maximumRecording * 1024 * 1024;
  await app.services.db.session.update({ where: { uid }, data: { recordedSize: limit - 200 } });
  expect(await add(uid, [output("short"), output("x".repeat(200)), event("exec"), output("y")])).toBe(
    "silenced",
  );
  expect(await app.services.db.session.findUnique({ where: { uid } })).toMatchObject({
    records: 1,
    events: 1,
  });
});

test("skips a session that no longer exists, and stores the others of the batch", async () => {
  const uid = await newSession();
  const batch = [
    { uid: "gone", after: 0, entries: [event("exec")] },
    { uid, after: 0, entries: [event("exec")] },
  ];
  expect(await addToSessions(app.services, batch, log)).toEqual(["silenced", "stored"]);
  expect(await app.services.db.sessionEvent.count({ where: { sessionUid: uid } })).toBe(1);
});

test("stores events of a session whose namespace records nothing", async () => {
  const uid = await newSession();
  const record = (on: boolean) => ana.call("setSessionRecord", { body: { session_record: on } });
  await record(false);
  expect(await add(uid, [event("exec")])).toBe("stored");
  expect(await add(uid, [output("x"), event("exec")])).toBe("silenced");
  await record(true);
  expect(await app.services.db.session.findUnique({ where: { uid } })).toMatchObject({
    records: 0,
    events: 2,
  });
});

test("accepts output after the end of a session as long as the session would have been active", async () => {
  const uid = await newSession();
  await app.services.db.session.update({ where: { uid }, data: { closedAt: app.services.now() } });
  expect(await add(uid, [output("late")])).toBe("stored");
  const longAgo = new Date(app.services.now().getTime() - 10 * 60_000);
  await app.services.db.session.update({ where: { uid }, data: { closedAt: longAgo } });
  expect(await add(uid, [output("too late")])).toBe("silenced");
});

describe("a repeated addition", () => {
  const repeat = (uid: string, after: number, entries: readonly SessionEntry[]) =>
    addToSessions(app.services, [{ uid, after, entries }], log);
  const recorded = async (uid: string) => {
    const chunks = await app.services.db.sessionRecord.findMany({
      where: { sessionUid: uid },
      orderBy: { sequence: "asc" },
    });
    return chunks.map(({ message }) => JSON.parse(message));
  };

  test("stores no entry twice", async () => {
    const uid = await newSession();
    const first = [output("a"), event("exec"), output("b")];
    expect(await repeat(uid, 0, first)).toEqual(["stored"]);
    expect(await repeat(uid, 0, first)).toEqual(["stored"]);
    expect(await repeat(uid, 1, [event("exec"), output("b"), output("c")])).toEqual(["stored"]);
    expect(await recorded(uid)).toEqual(["a", "b", "c"]);
    expect(await app.services.db.sessionEvent.count({ where: { sessionUid: uid } })).toBe(1);
  });

  test("stores no entry twice, even if the first addition is still running", async () => {
    const uid = await newSession();
    const same = [output("a"), event("exec")];
    const results = await Promise.all(Array.from({ length: 5 }, () => repeat(uid, 0, same)));
    expect(results.flat()).toEqual(Array(5).fill("stored"));
    expect(await recorded(uid)).toEqual(["a"]);
  });
});

test("shows a gap as an event and as a line in the recording", async () => {
  const uid = await newSession();
  const from = new Date("2026-11-01T10:00:00Z");
  const to = new Date("2026-11-01T10:02:03Z");
  const gap = { kind: "gap", seat: 0, from, to, entries: 3, bytes: 12_345, size: SIZE } as const;
  await add(uid, [output("before"), gap, output("after")]);
  const { body } = await ana.call("getSession", { params: { uid } });
  expect(body.events.items).toMatchObject([
    {
      type: "recording-gap",
      seat: 0,
      data: { from: from.toISOString(), to: to.toISOString(), entries: 3, bytes: 12_345 },
    },
  ]);
  const record = await ana.call("getSessionRecord", { params: { uid, seat: "0" } });
  expect(record.body.map(({ message }: { message: string }) => message)).toEqual([
    "before",
    "\r\n[recording gap: 12,345 bytes lost between 2026-11-01T10:00:00.000Z and 2026-11-01T10:02:03.000Z]\r\n",
    "after",
  ]);
});

describe("an addition that fails", () => {
  const failing = (error: Error) => ({
    ...app.services,
    db: replacing(app.services.db, { $transaction: () => Promise.reject(error) }),
  });
  const adapterError = (cause: object) => new DriverAdapterError(cause as DriverAdapterError["cause"]);
  const postgres = (originalCode: string) => adapterError({ kind: "postgres", originalCode });

  test.each([
    ["the database is full", "unwritable", adapterError({ kind: "sqlite", originalCode: "SQLITE_FULL" })],
    ["the connection was terminated", "unreachable", postgres("57P01")],
    ["the connection ended", "unreachable", new Error("Connection terminated unexpectedly")],
    ["too many changes conflict", "busy", adapterError({ kind: "TransactionWriteConflict" })],
    ["a value is invalid", "rejected", postgres("22P05")],
    ["a value has the wrong type", "rejected", new TypeError("not a date")],
    ["the error is unknown", "unknown", postgres("XX000")],
  ] as const)("because %s has the result %s", async (_, result, error) => {
    const uid = await newSession();
    const batch = [{ uid, after: 0, entries: [event("exec")] }];
    expect(await addToSessions(failing(error), batch, log)).toEqual([result]);
  });
});
