import { beforeAll, describe, expect, test } from "vitest";
import { withSharedApp } from "../http/appOfTest.ts";
import { enroll, type TestUser, valuesOf } from "../http/testApp.ts";
import type { RecordingDatabase } from "../plans/recording.ts";
import { openRecordingSqlite } from "./queryPlans.ts";

/**
 * Number of rows in each list. A page that begins after 10,000 rows is a deep page; the lists have more than twice as
 * many rows.
 */
const ROWS = 24_050;
const PER_PAGE = 100;

/** The format in which the service writes times. */
const TIME = "%Y-%m-%dT%H:%M:%f+00:00";

const app = withSharedApp({}, async (location) => {
  database = await openRecordingSqlite(location);
  return database;
});
let database: RecordingDatabase;
let ana: TestUser;
const uidOf = (n: number) => String(n).padStart(64, "0");

beforeAll(async () => {
  ana = await app.user("ana", "lab");
  const { uid: deviceUid } = await enroll(app, ana.tenant, "00:00:00:00:00:01");
  const now = Math.floor(app.services.now().getTime() / 1000);
  // One statement inserts all rows. Separate statements would take a hundred times as long. Each time occurs in two
  // sessions, so the ids decide their order.
  await app.services.db.$executeRaw`
    WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ${ROWS})
    INSERT INTO "Session" ("uid", "tenantId", "deviceUid", "username", "ipAddress", "type", "term", "startedAt", "lastSeen")
    SELECT printf('%064d', n), ${ana.tenant}, ${deviceUid}, 'root', '', '', '',
      strftime(${TIME}, ${now} - n / 2, 'unixepoch'), strftime(${TIME}, ${now}, 'unixepoch') FROM numbers`;
});

/**
 * Replaces the only device with as many devices as there were sessions. The sessions are deleted with the old device.
 */
async function fillDevices(): Promise<void> {
  const { db } = app.services;
  await db.device.deleteMany();
  await db.$executeRaw`
    WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ${ROWS})
    INSERT INTO "Device" ("uid", "tenantId", "name", "mac", "infoId", "infoPrettyName", "infoVersion", "infoArch",
      "infoPlatform", "publicKey", "statusUpdatedAt", "createdAt", "lastSeen")
    SELECT printf('%064d', n), ${ana.tenant}, 'host-' || n, '', '', '', '', '', 'native', '', strftime(${TIME}, 'now'),
      strftime(${TIME}, 'now'), strftime(${TIME}, 1767225600 - n / 2, 'unixepoch') FROM numbers`;
}

const newestFirst = Array.from({ length: ROWS }, (_, n) => uidOf(n % 2 === 0 ? n + 1 : n - 1));

const PAGES = [
  ["the first page", 1],
  ["the last page before deep ones", 100],
  ["the first deep page", 101],
  ["the last page of the first half", 121],
  ["the first page of the second half", 122],
  ["the last full page", 240],
  ["the last page", 241],
  ["a page after the end", 242],
] as const;

test.each(PAGES)("%s has the rows that a count from the start would select", async (_, page) => {
  database.takeQueries();
  const query = { page, per_page: PER_PAGE };
  const { body, headers } = await ana.call("getSessions", { query });
  const first = (page - 1) * PER_PAGE;
  expect(valuesOf(body, "uid")).toEqual(newestFirst.slice(first, first + PER_PAGE));
  expect(headers.get("x-total-count")).toBe(String(ROWS));
  // The service reads a page from the nearer end of the list, and so skips at most half of the rows.
  const skipped = database
    .takeQueries()
    .filter(({ sql }) => sql.startsWith('SELECT "Session"."uid" AS id'))
    .map(({ args }) => Number(args.at(-1)));
  expect(skipped.every((rows) => rows <= ROWS / 2)).toBe(true);
  expect(skipped).toHaveLength(page === 242 ? 0 : 1);
});

describe("a list that is read with its columns", () => {
  beforeAll(fillDevices, 120_000);

  test.each(PAGES)("%s has the same rows", async (_, page) => {
    const query = { page, per_page: PER_PAGE };
    const { body, headers } = await ana.call("getDevices", { query });
    const first = (page - 1) * PER_PAGE;
    expect(valuesOf(body, "uid")).toEqual(newestFirst.slice(first, first + PER_PAGE));
    expect(headers.get("x-total-count")).toBe(String(ROWS));
  });
});
