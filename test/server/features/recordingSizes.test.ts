import { beforeEach, expect, test } from "vitest";
import { foldRecordingSizes, readRecordingSizes } from "../../../server/features/sessions/recordingSizes.ts";
import { trimSessions } from "../../../server/features/sessions/retention.ts";
import { withAppAndUser, withInternalApp } from "../http/appOfTest.ts";
import { enrollProven, type TestUser } from "../http/testApp.ts";
import { addSessions, uidOfSession } from "./recordedSessions.ts";

const { app, ana } = withAppAndUser();
const internal = withInternalApp(app);
let eve: TestUser;
let devices: string[];

beforeEach(async () => {
  app.stopClock();
  eve = await app.user("eve", "elsewhere");
  devices = await Promise.all(
    [ana.tenant, eve.tenant].map(
      async (tenant) => (await enrollProven(app, tenant, "00:00:00:00:00:01")).uid,
    ),
  );
});

const record = (uid: string, text: string) => {
  const body = { uid, seat: 0, message: text, width: 80, height: 24 };
  return internal.call("storeSessionRecord", { params: { uid, seat: "0" }, body });
};

/** Adds sessions with one chunk each to the namespace of one of the devices. */
const add = (device: number, count: number, firstUid: number) =>
  addSessions(
    app,
    { tenantId: [ana.tenant, eve.tenant][device] ?? "", deviceUid: devices[device] ?? "" },
    Array.from({ length: count }, (_, index) => ({
      uid: uidOfSession(firstUid + index),
      chunks: ["output"],
    })),
  );

/** Expects that the sizes that triggers maintain equal the sizes of the recorded sessions. */
async function expectExactSizes(): Promise<void> {
  const sessions = await app.services.db.session.findMany({ where: { recorded: true } });
  const expected = new Map<string, number>();
  // A size that was subtracted twice would be negative, so sizes of 0 and below count too.
  const rows = await app.services.db.recordingSize.groupBy({ by: ["tenantId"], _sum: { size: true } });
  for (const { tenantId } of rows) expected.set(tenantId, 0);
  for (const { tenantId, recordedSize } of sessions) {
    expected.set(tenantId, (expected.get(tenantId) ?? 0) + recordedSize);
  }
  const sizes = rows.map(({ tenantId, _sum }) => [tenantId, Number(_sum.size)] as const);
  expect(new Map(sizes)).toEqual(expected);
}

test("the sizes of namespaces are exact after concurrent recordings, deletions and retention", async () => {
  await add(0, 8, 0);
  await add(1, 8, 100);
  await expectExactSizes();
  const uids = Array.from({ length: 8 }, (_, index) => [
    uidOfSession(index),
    uidOfSession(100 + index),
  ]).flat();
  const answers = await Promise.all(
    [...uids, ...uids].map((uid, index) => record(uid, "x".repeat(100 * index))),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  await expectExactSizes();
  await foldRecordingSizes(app.services);
  await expectExactSizes();
  app.pass(2 * 24 * 3600);
  await add(0, 3, 200);
  const settings = { ...app.services.settings, sessionRetention: 0, recordingRetention: 1 };
  await Promise.all([
    trimSessions({ ...app.services, settings }, new AbortController().signal),
    record(uidOfSession(200), "late"),
    foldRecordingSizes(app.services),
  ]);
  await expectExactSizes();
  expect(await app.services.db.session.count({ where: { recorded: true } })).toBe(3);
});

test("the sizes follow the deletion of a recording, a device and a namespace", async () => {
  await add(0, 3, 0);
  await add(1, 2, 100);
  const params = { uid: uidOfSession(0), seat: "0" };
  expect((await ana.call("deleteSessionRecord", { params })).status).toBe(200);
  await expectExactSizes();
  expect((await eve.call("deleteNamespace")).status).toBe(200);
  await expectExactSizes();
  await app.services.db.device.delete({ where: { uid: devices[0] ?? "" } });
  expect(await readRecordingSizes(app.services.db)).toEqual([]);
  await expectExactSizes();
});
