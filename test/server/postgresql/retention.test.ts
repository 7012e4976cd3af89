import { expect, test } from "vitest";
import { RETENTION_LOCK, RemovalSteps } from "../../../server/features/sessions/removeSessions.ts";
import { trimSessions } from "../../../server/features/sessions/retention.ts";
import { addSessions } from "../features/recordedSessions.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { enrollProven } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();

const neverStopped = () => new AbortController().signal;

test("one instance at a time deletes sessions, and the others end their runs", async () => {
  const first = new RemovalSteps(app.services, neverStopped(), RETENTION_LOCK);
  const other = new RemovalSteps(app.services, neverStopped(), RETENTION_LOCK);
  const result = await first.run(async () => {
    expect(await other.run(async () => "deleted")).toBeUndefined();
    return "deleted";
  });
  expect(result).toBe("deleted");
  expect([first.hasEnded, other.hasEnded]).toEqual([false, true]);
  const later = new RemovalSteps(app.services, neverStopped(), RETENTION_LOCK);
  expect(await later.run(async () => "deleted")).toBe("deleted");
});

test("several instances that delete at the same time delete each session once", async () => {
  const SESSIONS = 300;
  const { uid } = await enrollProven(app, ana.tenant, "00:00:00:00:00:01");
  await addSessions(
    app,
    { tenantId: ana.tenant, deviceUid: uid },
    Array.from({ length: SESSIONS }, () => ({ chunks: ["output"], events: 1 })),
  );
  app.pass(2 * 24 * 3600);
  const settings = { ...app.services.settings, sessionRetention: 1, recordingRetention: 1 };
  const run = () => trimSessions({ ...app.services, settings }, neverStopped());
  await Promise.all([run(), run(), run()]);
  const { db, metrics } = app.services;
  expect([await db.session.count(), await db.sessionRecord.count(), await db.sessionEvent.count()]).toEqual([
    0, 0, 0,
  ]);
  expect((await metrics.deletedRecordings.get()).values).toMatchObject([{ value: SESSIONS }]);
  expect((await metrics.deletedSessions.get()).values).toMatchObject([{ value: SESSIONS }]);
});
