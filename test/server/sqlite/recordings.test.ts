import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { beforeAll, expect, test } from "vitest";
import type { Database } from "../../../server/db/Database.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { addToSessions } from "../../../server/features/sessions/addEntries.ts";
import { beginSession } from "../../../server/features/sessions/entry.ts";
import { SessionWriter } from "../../../server/gateway/ssh/SessionWriter.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { acceptedDevice } from "../http/fixtures.ts";
import type { TestUser } from "../http/testApp.ts";

const SIZE = { width: 80, height: 24 };
const silent = pino({ level: "silent" });

const app = withSharedApp({}, async (location) => {
  database = await openDatabase(location);
  return database;
});
let ana: TestUser;
let database: Database;
let deviceUid: string;
beforeAll(async () => {
  ana = await app.user("ana", "lab");
  deviceUid = (await acceptedDevice(app, ana, "edge-1")).uid;
  await ana.call("setSessionRecord", { body: { session_record: true } });
});

const pragma = async (text: string) => {
  const [row] = await database.client.$queryRawUnsafe<Record<string, unknown>[]>(`PRAGMA ${text}`);
  return Number(Object.values(row ?? {})[0]);
};

const OUTAGES = {
  // SQLite handles this size limit like a full disk (SQLITE_FULL).
  "full disk": {
    begin: async () => pragma(`max_page_count = ${await pragma("page_count")}`),
    end: () => pragma("max_page_count = 1000000000"),
  },
  // With this setting, SQLite rejects writes as if the disk had been remounted read-only.
  "read-only database": { begin: () => pragma("query_only = ON"), end: () => pragma("query_only = OFF") },
};

test.each(Object.entries(OUTAGES))("records or marks all output of a %s", async (_, outage) => {
  const uid = randomBytes(32).toString("hex");
  const login = { username: "root", ipAddress: "198.51.100.1", type: "none", term: "none" };
  await beginSession(app.services, { uid, deviceUid, ...login, viaGateway: true });
  const write: ConstructorParameters<typeof SessionWriter>[0] = (sessions) =>
    addToSessions(app.services, sessions, () => silent);
  const writer = new SessionWriter(write, silent, { capacity: 64 * 1024 * 1024, patience: 500 });
  const recorder = writer.open(uid, { recording: true });
  recorder.begun();
  recorder.authenticated();
  const chunk = Buffer.alloc(10_000, "x");
  const output = async (chunks: number) => {
    for (let number = 0; number < chunks; number += 1) await recorder.record(0, "stdout", chunk, SIZE);
  };
  await output(3);
  await outage.begin();
  // The queue is full after 26 chunks.
  await output(100);
  recorder.event(0, "exit-status", { status: 3 });
  await outage.end();
  await recorder.finish();
  const { bytes, gaps } = writer.takeLost();
  expect(gaps).toBe(1);
  const { body } = await ana.call("getSession", { params: { uid } });
  expect(body.events.items).toMatchObject([
    { type: "recording-gap", data: { bytes } },
    { type: "exit-status", data: { status: 3 } },
  ]);
  const chunks = await app.services.db.sessionRecord.findMany({ where: { sessionUid: uid } });
  const recorded = chunks.map(({ message }) => JSON.parse(message)).join("");
  expect(recorded.match(/x/g)).toHaveLength(103 * chunk.length - bytes);
  expect(recorded).toContain("[recording gap: ");
});
