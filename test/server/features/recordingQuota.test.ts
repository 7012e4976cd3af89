import { describe, expect, onTestFinished, test } from "vitest";
import { enforceQuotas } from "../../../server/features/sessions/recordingQuotas.ts";
import { fullNamespaces } from "../../../server/features/sessions/recordingShares.ts";
import { readRecordingSizes } from "../../../server/features/sessions/recordingSizes.ts";
import type { ServiceSettings } from "../../../server/settings/readConfig.ts";
import { startInternalApp } from "../http/internalTestApp.ts";
import { enrollProven, startApp, type TestApp, type TestUser } from "../http/testApp.ts";
import { addSessions, uidOfSession } from "./recordedSessions.ts";

const MIB = 1024 * 1024;
const HOUR = 3600;
/** The text of a chunk that takes 256 KiB with its overhead. */
const CHUNK = "x".repeat(256 * 1024 - 130);

describe("the namespaces above their share", () => {
  const shares = (sizes: readonly number[], all?: number, namespace?: number) =>
    fullNamespaces(
      sizes.map((bytes, index) => ({ tenantId: String(index), bytes })),
      { all, namespace },
    ).map(({ tenantId, excess }) => `${tenantId} ${excess}`);

  test.each([
    ["without a quota, none", [9, 5], undefined, undefined, []],
    ["below the quotas, none", [9, 5], 20, 10, []],
    ["at its own quota, one is full without an excess", [9, 5], undefined, 9, ["0 0"]],
    ["above its own quota", [9, 5], undefined, 4, ["0 5", "1 1"]],
    ["the largest alone, if the others need less than an equal share", [100, 5, 1], 50, undefined, ["0 56"]],
    ["the largest ones equally", [100, 60, 1], 50, undefined, ["0 76", "1 36"]],
    ["the smallest keep theirs, although the largest grows", [1000, 5, 5], 20, undefined, ["0 990"]],
    ["at the quota of all, the largest is full without an excess", [15, 5], 20, undefined, ["0 0"]],
    ["after the quota of each, the quota of all is not exceeded", [100, 5], 30, 20, ["0 80"]],
    ["with both quotas exceeded", [100, 100], 30, 20, ["0 85", "1 85"]],
  ] as const)("%s", (_, sizes, all, namespace, expected) => {
    expect(shares(sizes, all, namespace)).toEqual(expected);
  });
});

let app: TestApp;
const logged: string[] = [];
const write =
  (level: string) =>
  (...line: readonly unknown[]) =>
    void logged.push(`${level}: ${line.at(-1)}`);
const log = { warn: write("warn"), info: write("info") } as never;

async function start(settings: Partial<ServiceSettings>) {
  logged.length = 0;
  app = await startApp(settings);
  onTestFinished(() => app.stop());
  app.stopClock();
  const ana = await app.user("ana", "lab");
  const eve = await app.user("eve", "elsewhere");
  const devices = new Map<string, string>();
  for (const { tenant } of [ana, eve]) {
    devices.set(tenant, (await enrollProven(app, tenant, "00:00:00:00:00:01")).uid);
  }
  await ana.call("acceptDevice", { params: { uid: devices.get(ana.tenant) ?? "" } });
  await eve.call("acceptDevice", { params: { uid: devices.get(eve.tenant) ?? "" } });
  /** Adds sessions with one chunk of 256 KiB, each of which was last active a minute after the previous one. */
  const add = async ({ tenant }: TestUser, first: number, count: number) => {
    for (let index = first; index < first + count; index += 1) {
      const of = { tenantId: tenant, deviceUid: devices.get(tenant) ?? "" };
      await addSessions(app, of, [{ uid: uidOfSession(index), chunks: [CHUNK], events: 2 }]);
      app.pass(60);
    }
  };
  const enforce = () => enforceQuotas(app.services, new AbortController().signal, log);
  const recorded = async () =>
    (await app.services.db.session.findMany({ where: { recorded: true }, orderBy: { uid: "asc" } })).map(
      ({ uid }) => Number.parseInt(uid, 16),
    );
  return { ana, eve, devices, add, enforce, recorded };
}

test("the oldest recordings of a namespace above its quota are deleted, and their sessions have an event", async () => {
  const { ana, eve, add, enforce, recorded } = await start({ namespaceRecordingsMax: 1 });
  await add(eve, 100, 3);
  await add(ana, 0, 6);
  app.pass(HOUR);
  await enforce();
  expect(await recorded()).toEqual([2, 3, 4, 5, 100, 101, 102]);
  expect(await app.services.db.sessionRecord.count()).toBe(7);
  const session = await ana.call("getSession", { params: { uid: uidOfSession(0) } });
  expect(session.body).toMatchObject({ recorded: false });
  expect(session.body.events.items.at(-1)).toMatchObject({
    type: "recording-removed",
    data: { reason: "quota" },
  });
  expect(logged).toEqual(["info: deleted the oldest recordings of a namespace: quota"]);
  const { deletedRecordings, recordings } = app.services.metrics;
  expect((await deletedRecordings.get()).values).toMatchObject([{ labels: { reason: "quota" }, value: 2 }]);
  await enforce();
  expect((await recordings.get()).values).toMatchObject([{ value: 7 * 256 * 1024 }]);
  expect(await recorded()).toHaveLength(7);
});

test("a namespace with many recordings never displaces those of another namespace at the quota of all", async () => {
  const { ana, eve, add, enforce, recorded } = await start({ recordingsMax: 1 });
  await add(eve, 100, 1);
  await add(ana, 0, 9);
  app.pass(HOUR);
  await enforce();
  expect(await recorded()).toEqual([6, 7, 8, 100]);
});

test("recordings of the last hour are kept, and a warning is logged once", async () => {
  const { ana, add, enforce, recorded } = await start({ namespaceRecordingsMax: 1 });
  await add(ana, 0, 6);
  await enforce();
  await enforce();
  expect(await recorded()).toHaveLength(6);
  expect(logged).toEqual([
    "warn: the recordings of a namespace exceed their quota, but all are younger than an hour",
  ]);
  app.pass(HOUR);
  await enforce();
  expect(await recorded()).toEqual([2, 3, 4, 5]);
  expect(logged.slice(1)).toEqual([
    "info: deleted the oldest recordings of a namespace: quota",
    "info: the recordings of a namespace are within their quota again",
  ]);
});

test("with the policy refuse, all namespaces refuse new sessions at twice the quota of all recordings", async () => {
  const { ana, add, enforce } = await start({ recordingsMax: 1, recordingsFull: "refuse" });
  const { fullRecordings } = app.services;
  await add(ana, 0, 7);
  await enforce();
  expect([fullRecordings.refuses(ana.tenant), fullRecordings.refuses("another namespace")]).toEqual([
    true,
    false,
  ]);
  await add(ana, 7, 1);
  await enforce();
  expect(fullRecordings.refuses("another namespace")).toBe(true);
  await app.services.db.session.deleteMany({});
  await enforce();
  expect(fullRecordings.refuses(ana.tenant)).toBe(false);
  expect(logged).toEqual([
    "warn: the recordings of a namespace are full; refusing its new sessions",
    expect.stringMatching(/^warn: all recordings are twice as large/),
    "info: all recordings are smaller than twice their quota again",
    "info: the recordings of a namespace are within their quota again",
  ]);
});

test("with the policy refuse, a full namespace refuses new sessions while it records sessions", async () => {
  const { ana, eve, devices, add, enforce, recorded } = await start({
    namespaceRecordingsMax: 1,
    recordingsFull: "refuse",
  });
  const internal = await startInternalApp(app);
  try {
    await add(ana, 0, 4);
    let next = 1000;
    const begin = async ({ tenant }: TestUser) => {
      next += 1;
      const { status, body } = await internal.call("createSession", {
        body: {
          uid: uidOfSession(next),
          device_uid: devices.get(tenant),
          username: "root",
          ip_address: "192.0.2.1",
        },
      });
      return status === 200 ? status : [status, body.message];
    };
    expect(await begin(ana)).toBe(200);
    await enforce();
    await enforce();
    const full = [403, "the recordings of the namespace are full"];
    expect([await begin(ana), await begin(eve)]).toEqual([full, 200]);
    expect(logged).toEqual(["warn: the recordings of a namespace are full; refusing its new sessions"]);
    expect((await app.services.metrics.refusedRecordings.get()).values).toMatchObject([{ value: 1 }]);
    // An open session continues and records up to its own limit.
    const uid = uidOfSession(1001);
    const body = { uid, seat: 0, message: "output", width: 80, height: 24 };
    const stored = await internal.call("storeSessionRecord", { params: { uid, seat: "0" }, body });
    expect(stored.status).toBe(200);
    expect(await recorded()).toHaveLength(5);
    await ana.call("setSessionRecord", { body: { session_record: false } });
    expect(await begin(ana)).toBe(200);
    await ana.call("setSessionRecord", { body: { session_record: true } });
    for (const id of [0, 1]) {
      await ana.call("deleteSessionRecord", { params: { uid: uidOfSession(id), seat: "0" } });
    }
    await enforce();
    expect(await begin(ana)).toBe(200);
    expect(logged.slice(1)).toEqual(["info: the recordings of a namespace are within their quota again"]);
    const [{ bytes } = { bytes: 0 }] = await readRecordingSizes(app.services.db);
    expect(bytes).toBeLessThan(MIB);
  } finally {
    await internal.stop();
  }
});
