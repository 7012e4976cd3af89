import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { beforeAll, expect, test } from "vitest";
import { addToSessions, type SessionEntry } from "../../../server/features/sessions/addEntries.ts";
import { beginSession } from "../../../server/features/sessions/entry.ts";
import { withSharedApp } from "../http/lab.ts";
import { enroll, type TestUser } from "../http/testApp.ts";

const app = withSharedApp();
const log = () => pino({ level: "silent" });
const SIZE = { width: 80, height: 24 };
let ana: TestUser;
let deviceUid: string;

beforeAll(async () => {
  ana = await app.user("ana", "lab");
  deviceUid = (await enroll(app, ana.tenant, "00:00:00:00:00:01")).uid;
  await ana.call("acceptDevice", { params: { uid: deviceUid } });
  const record = { token: ana.token, params: { tenant: ana.tenant }, body: { session_record: true } };
  await app.call("setSessionRecord", record);
});

async function newSession(): Promise<string> {
  const uid = randomBytes(32).toString("hex");
  const login = { username: "root", ipAddress: "198.51.100.1", type: "none", term: "none" };
  await beginSession(app.services, { uid, deviceUid, ...login });
  return uid;
}

const add = (uid: string, entries: readonly SessionEntry[]) =>
  addToSessions(app.services, [{ uid, entries }], log);

const output = (text: string): SessionEntry => ({
  ...{ kind: "output" as const, seat: 0, stream: "stdout" as const, text, size: SIZE },
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
  const silenced = await addToSessions(
    app.services,
    [
      {
        uid: one,
        entries: [
          { kind: "authenticated" },
          { kind: "described", type: "term", term: "xterm\0" },
          event("pty-req", { columns: 80 }),
          output("first \u{1f600}"),
          event("exit-status", { status: 0 }),
          output("\0second"),
        ],
      },
      { uid: other, entries: [event("exec", { command: "true" })] },
    ],
    log,
  );
  expect(silenced).toEqual([]);
  await add(one, [output("third"), event("exec", { command: "ls" })]);
  const rows = await app.services.db.session.findMany({
    where: { uid: { in: [one, other] } },
    include: { items: { orderBy: { sequence: "asc" } }, chunks: { orderBy: { sequence: "asc" } } },
  });
  expect(rows.find(({ uid }) => uid === one)).toMatchObject({
    ...{ authenticated: true, recorded: true, type: "term", term: "xterm\u{fffd}", events: 3, records: 3 },
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
  expect(await add(uid, [output("short"), output("x".repeat(200)), event("exec"), output("y")])).toEqual([
    uid,
  ]);
  expect(await app.services.db.session.findUnique({ where: { uid } })).toMatchObject({
    records: 1,
    events: 1,
  });
});

test("skips a session that no longer exists, and stores the others of the batch", async () => {
  const uid = await newSession();
  const batch = [
    { uid: "gone", entries: [event("exec")] },
    { uid, entries: [event("exec")] },
  ];
  expect(await addToSessions(app.services, batch, log)).toEqual(["gone"]);
  expect(await app.services.db.sessionEvent.count({ where: { sessionUid: uid } })).toBe(1);
});

test("stores events of a session whose namespace records nothing", async () => {
  const uid = await newSession();
  const record = (on: boolean) =>
    ana.call("setSessionRecord", { params: { tenant: ana.tenant }, body: { session_record: on } });
  await record(false);
  expect(await add(uid, [event("exec")])).toEqual([]);
  expect(await add(uid, [output("x"), event("exec")])).toEqual([uid]);
  await record(true);
  expect(await app.services.db.session.findUnique({ where: { uid } })).toMatchObject({
    records: 0,
    events: 2,
  });
});

test("accepts output after the end of a session as long as the session would have been active", async () => {
  const uid = await newSession();
  await app.services.db.session.update({ where: { uid }, data: { closedAt: app.services.now() } });
  expect(await add(uid, [output("late")])).toEqual([]);
  const longAgo = new Date(app.services.now().getTime() - 10 * 60_000);
  await app.services.db.session.update({ where: { uid }, data: { closedAt: longAgo } });
  expect(await add(uid, [output("too late")])).toEqual([uid]);
});
