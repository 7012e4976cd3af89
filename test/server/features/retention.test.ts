import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { RetentionBacklog } from "../../../server/features/sessions/RetentionBacklog.ts";
import { SLICE } from "../../../server/features/sessions/removeSessions.ts";
import { trimSessions } from "../../../server/features/sessions/retention.ts";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { acceptedDevice } from "../http/fixtures.ts";
import { enrollProven } from "../http/testApp.ts";
import { addSessions, type GivenSession, uidOfSession } from "./recordedSessions.ts";

const DAY = 24 * 3600;
const isPostgresql = postgresqlAddress() !== undefined;

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
let device: string;
beforeEach(async () => {
  app.stopClock();
  ({ uid: device } = await acceptedDevice(app, ana, "edge-1", enrollProven));
});

/** Adds sessions that were last active now. */
const add = (sessions: readonly GivenSession[]) =>
  addSessions(app, { tenantId: ana.tenant, deviceUid: device }, sessions);
const trim = (sessionRetention: number, recordingRetention: number, stop = new AbortController().signal) =>
  trimSessions(
    { ...app.services, settings: { ...app.services.settings, sessionRetention, recordingRetention } },
    stop,
  );
const uids = async () => (await app.services.db.session.findMany()).map(({ uid }) => uid).sort();
const counts = async () => {
  const { db } = app.services;
  return {
    sessions: await db.session.count(),
    records: await db.sessionRecord.count(),
    events: await db.sessionEvent.count(),
  };
};

/**
 * Calls a function after each step of a deletion, with the result of the step: on SQLite after each statement that
 * changes the database, on PostgreSQL after each transaction.
 */
function afterSteps(seen: (result: unknown) => Promise<void> | void): void {
  const { db } = app.services;
  const method = isPostgresql ? "$transaction" : "$executeRaw";
  const run = db[method].bind(db) as (...args: unknown[]) => Promise<unknown>;
  const spy = vi.spyOn(db, method).mockImplementation((async (...args: unknown[]) => {
    const result = await run(...args);
    await seen(result);
    return result;
  }) as never);
  onTestFinished(() => spy.mockRestore());
}

test("deletes recordings first, then their sessions, and keeps active sessions", async () => {
  await add([{ chunks: ["old"] }, {}]);
  const [old = "", alive = ""] = [uidOfSession(0), uidOfSession(1)];
  app.pass(3 * DAY);
  await internal.call("keepSessionAlive", { params: { uid: alive } });
  await trim(0, 0);
  await trim(5, 4);
  expect(await counts()).toMatchObject({ records: 1 });
  await trim(5, 2);
  expect(await counts()).toEqual({ sessions: 2, records: 0, events: 0 });
  expect((await app.services.db.session.findUnique({ where: { uid: old } }))?.recorded).toBe(false);
  await trim(2, 0);
  expect(await uids()).toEqual([alive]);
});

// The test stores the sessions of 2,000 devices.
test("one run deletes all expired sessions of an hour of 2,000 devices, and leaves no part of them", {
  tags: ["long"],
}, async () => {
  const HOUR_OF_DEVICES = 2000;
  await add(
    Array.from({ length: HOUR_OF_DEVICES }, (_, index) => ({
      chunks: Array.from({ length: 1 + (index % 3) }, () => "output"),
      events: 2,
    })),
  );
  app.pass(2 * DAY);
  await add([{ uid: "5e".repeat(32), chunks: ["new"], events: 1 }]);
  let steps = 0;
  afterSteps(() => {
    steps += 1;
  });
  await trim(1, 1);
  expect(await counts()).toEqual({ sessions: 1, records: 1, events: 1 });
  // Several sessions share a statement that changes the database.
  expect(steps).toBeGreaterThan(0);
  expect(steps / HOUR_OF_DEVICES).toBeLessThan(0.2);
  const { metrics } = app.services;
  expect((await metrics.deletedRecordings.get()).values).toMatchObject([
    { labels: { reason: "retention" }, value: HOUR_OF_DEVICES },
  ]);
  expect((await metrics.deletedSessions.get()).values).toMatchObject([{ value: HOUR_OF_DEVICES }]);
});

test("deletes a long recording and many events in several statements, each with limited rows and bytes", {
  tags: ["long"],
}, async () => {
  const chunk = "x".repeat(32 * 1024);
  const chunks = [...Array.from({ length: 40 }, () => chunk), ...Array.from({ length: 700 }, () => "")];
  await add([{ chunks, events: 600 }, { chunks: ["short"] }, { chunks: ["x".repeat(2 * SLICE.bytes)] }]);
  app.pass(2 * DAY);
  const deleted: unknown[] = [];
  afterSteps((result) => void deleted.push(result));
  await trim(1, 1);
  expect(await counts()).toEqual({ sessions: 0, records: 0, events: 0 });
  // The first recording takes 3 steps for the long chunks and 3 for the short ones, the events take 3.
  expect(deleted.length).toBeGreaterThanOrEqual(9);
  if (isPostgresql) return;
  expect(Math.max(...(deleted as number[]))).toBeLessThanOrEqual(SLICE.rows);
  expect(deleted[0]).toBe(Math.floor(SLICE.bytes / (chunk.length + 2)));
});

test("a stop of the service ends a run after the current statement", async () => {
  await add(Array.from({ length: 120 }, () => ({ chunks: ["output"] })));
  app.pass(2 * DAY);
  const stop = new AbortController();
  const { deletedRecordings } = app.services.metrics;
  const spy = vi.spyOn(deletedRecordings, "inc").mockImplementation(() => stop.abort());
  onTestFinished(() => spy.mockRestore());
  await trim(1, 1, stop.signal);
  const remaining = await app.services.db.session.count({ where: { recorded: true } });
  expect(remaining).toBe(70);
  spy.mockRestore();
  await trim(1, 1);
  expect(await counts()).toEqual({ sessions: 0, records: 0, events: 0 });
});

test("deletes the oldest first, regardless of their namespaces", async () => {
  const eve = await app.user("eve", "elsewhere");
  const { uid: other } = await enrollProven(app, eve.tenant, "00:00:00:00:00:02");
  await addSessions(app, { tenantId: eve.tenant, deviceUid: other }, [
    { uid: "ee".repeat(32), chunks: ["first"] },
  ]);
  app.pass(1);
  await add(Array.from({ length: 60 }, () => ({ chunks: ["later"] })));
  app.pass(2 * DAY);
  const stop = new AbortController();
  const spy = vi.spyOn(app.services.metrics.deletedRecordings, "inc").mockImplementation(() => stop.abort());
  onTestFinished(() => spy.mockRestore());
  await trim(0, 1, stop.signal);
  expect(await app.services.db.session.count({ where: { recorded: true } })).toBe(11);
  expect(await app.services.db.session.count({ where: { recorded: true, tenantId: eve.tenant } })).toBe(0);
});

test("a session that records output during the deletion stays marked, and a later run deletes the output", async () => {
  await add([{ chunks: ["old"] }]);
  const uid = uidOfSession(0);
  app.pass(2 * DAY);
  let isStored = false;
  afterSteps(async () => {
    if (isStored) return;
    isStored = true;
    const { session, sessionRecord } = app.services.db;
    await session.update({ where: { uid }, data: { records: 2 } });
    const time = app.services.now();
    await sessionRecord.create({
      data: { sessionUid: uid, seat: 0, sequence: 2, time, message: '"late"', width: 80n, height: 24n },
    });
  });
  const ended = new AbortController();
  const spy = vi.spyOn(app.services.metrics.deletedRecordings, "inc").mockImplementation(() => ended.abort());
  onTestFinished(() => spy.mockRestore());
  await trim(0, 1, ended.signal);
  expect(isStored).toBe(true);
  expect(await app.services.db.session.findUnique({ where: { uid } })).toMatchObject({ recorded: true });
  expect(await counts()).toMatchObject({ records: 1 });
  await trim(0, 1);
  expect(await app.services.db.session.findUnique({ where: { uid } })).toMatchObject({ recorded: false });
  expect(await counts()).toMatchObject({ records: 0 });
});

test("keeps the audit trail of a deleted session", async () => {
  await add([{}]);
  const uid = uidOfSession(0);
  await ana.call("closeSession", { params: { uid }, body: { device } });
  app.pass(2 * DAY);
  await trim(1, 0);
  expect(await uids()).toEqual([]);
  const token = await app.tokenOf(ana);
  const query = { kind: "session", object: uid };
  const trail = await app.call("getAuditTrail", { token, params: { tenant: ana.tenant }, query });
  expect(trail.body).toMatchObject([{ operation: "closeSession" }]);
});

test("the backlog is the time by which the oldest recording or session exceeds its retention, and is logged once per change", async () => {
  const HOUR = 3600;
  const settings = { ...app.services.settings, sessionRetention: 2, recordingRetention: 1 };
  const services = { ...app.services, settings };
  const logged: string[] = [];
  const write = (level: string) => () => void logged.push(level);
  const backlog = new RetentionBacklog(services, { warn: write("warn"), info: write("info") } as never);
  const measured = async () => {
    await backlog.measure();
    const { values } = await services.metrics.retentionBacklog.get();
    return Object.fromEntries(values.map(({ labels, value }) => [labels.kind, value]));
  };
  expect(await measured()).toEqual({ recording: 0, session: 0 });
  await add([{ chunks: ["output"] }, {}]);
  app.pass(DAY + HOUR);
  expect(await measured()).toEqual({ recording: HOUR, session: 0 });
  expect(logged).toEqual([]);
  app.pass(1);
  expect(await measured()).toEqual({ recording: HOUR + 1, session: 0 });
  app.pass(DAY);
  expect(await measured()).toEqual({ recording: DAY + HOUR + 1, session: HOUR + 1 });
  expect(logged).toEqual(["warn"]);
  await trimSessions(services, new AbortController().signal);
  expect(await measured()).toEqual({ recording: 0, session: 0 });
  expect(await measured()).toEqual({ recording: 0, session: 0 });
  expect(logged).toEqual(["warn", "info"]);
});
