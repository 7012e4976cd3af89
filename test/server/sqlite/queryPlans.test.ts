import { type Operation, type Operations, operations } from "@gatehouse-access/sdk/contract";
import { beforeAll, describe, expect, test } from "vitest";
import { trimSessions } from "../../../server/features/sessions/retention.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { encodeFilter, enroll, property, type TestUser } from "../http/testApp.ts";
import { fill, uidOf } from "../plans/fill.ts";
import { LISTS } from "../plans/forms.ts";
import type { RecordingDatabase } from "../plans/recording.ts";
import { openRecordingSqlite } from "./queryPlans.ts";

type Id = keyof Operations;

/** Number of rows of each kind in the tested namespace. */
const ROWS = 2000;
/**
 * Number of rows in another namespace. SQLite does not count rows before it plans, so its plans do not depend on this
 * number.
 */
const OTHER_ROWS = 100;

const app = withSharedApp({ edition: "cloud", maximumPendingDevices: 10 * ROWS }, async (location) => {
  database = await openRecordingSqlite(location);
  return database;
});
let database: RecordingDatabase;
let ana: TestUser;

beforeAll(async () => {
  ana = await app.user("ana", "lab");
  const eve = await app.user("eve", "eves");
  await fill(app, ana, ROWS);
  await fill(app, eve, OTHER_ROWS);
});

test("identifies a new device by an index, and reads the number of pending devices from the counts", async () => {
  database.takeQueries();
  await enroll(app, ana.tenant, "00:00:00:00:00:01");
  const plans = await Promise.all(database.takeQueries().map((query) => database.planOf(query)));
  const counts = plans.filter(({ text }) => /SEARCH DeviceCount USING/.test(text));
  expect(counts).toHaveLength(1);
  expect(plans.filter(({ text }) => /^SELECT COUNT/.test(text))).toEqual([]);
  expect(plans.flatMap((plan) => plan.scans)).toEqual([]);
});

test("accepts a device without reading the namespace's other devices", async () => {
  const { uid } = await enroll(app, ana.tenant, "00:00:00:00:00:02");
  await app.services.db.namespace.update({ where: { tenantId: ana.tenant }, data: { maxDevices: -1 } });
  database.takeQueries();
  expect((await ana.call("acceptDevice", { params: { uid } })).status).toBe(200);
  const plans = await Promise.all(database.takeQueries().map((query) => database.planOf(query)));
  // A cloud instance also counts the devices that were removed recently.
  const others = plans.filter(({ text }) => !text.includes("'removed'"));
  const searches = others.flatMap(({ text }) => text.match(/SEARCH (main\.)?Device .*/g) ?? []);
  expect(searches.length).toBeGreaterThan(2);
  for (const search of searches) expect(search).toMatch(/\b(uid|mac|name)=\?/);
});

test("the statistics count online devices with an index alone, and read no other devices", async () => {
  database.takeQueries();
  expect((await ana.call("getStats")).status).toBe(200);
  const plans = await Promise.all(database.takeQueries().map((query) => database.planOf(query)));
  const [counts, ...more] = plans.filter(({ text }) => text.includes('"Device"'));
  expect(more).toEqual([]);
  expect(counts?.text.match(/SEARCH Device .*/g)).toEqual([expect.stringContaining("USING COVERING INDEX")]);
});

test("counts sessions, and finds the sessions of a page, with an index alone", async () => {
  database.takeQueries();
  await ana.call("getSessions", { query: { page: 3 } });
  const plans = await Promise.all(database.takeQueries().map((query) => database.planOf(query)));
  const ofList = plans.filter(({ text }) =>
    /^SELECT (\(SELECT COUNT.* FROM "Session"|"Session"."uid" AS id)/.test(text),
  );
  expect(ofList).toHaveLength(2);
  for (const { text } of ofList) {
    expect(text).toMatch(/SEARCH Session USING COVERING INDEX Session_tenantId_/);
  }
});

test.each([
  [
    "with a tag",
    property("tags", "contains", ["edge"]),
    `SEARCH Tag USING INDEX Tag_tenantId_name_key (tenantId=? AND name=?)
SEARCH DeviceTagUse USING COVERING INDEX DeviceTagUse_tagId_deviceUid_idx`,
  ],
  ["with a part of their name", property("name", "contains", "-77"), "SCAN DeviceName VIRTUAL TABLE INDEX"],
])("finds devices %s with one statement and an index", async (_, item, step) => {
  database.takeQueries();
  const query = { filter: encodeFilter([item]) };
  expect((await ana.call("getDevices", { query })).status).toBe(200);
  const plans = await Promise.all(database.takeQueries().map((statement) => database.planOf(statement)));
  const [found, ...more] = plans.filter(({ text }) => text.includes('"Device"'));
  expect(more).toEqual([]);
  expect(found?.text).toContain(`MATERIALIZE candidates\n${step}`);
});

test("finds old sessions and recordings with an index", async () => {
  database.takeQueries();
  const settings = { ...app.services.settings, sessionRetention: 2, recordingRetention: 1 };
  await trimSessions({ ...app.services, settings }, new AbortController().signal);
  const queries = database.takeQueries();
  expect(queries.length).toBeGreaterThan(0);
  for (const query of queries) {
    const plan = await database.planOf(query);
    expect(plan.scans, plan.text).toEqual([]);
    expect(plan.sorts, plan.text).toBe(false);
  }
});

test("covers every list of the contract", () => {
  const lists = Object.values(operations as Record<string, Operation>)
    .filter(({ method, success }) => method === "GET" && success.headers.includes("X-Total-Count"))
    .map(({ id }) => id);
  expect(Object.keys(LISTS).sort()).toEqual(lists.sort());
});

describe.each(Object.entries(LISTS))("%s", (id, forms) => {
  test.each(forms)("reads with an index: $name", async ({ query, sorted = false, whole }) => {
    database.takeQueries();
    const params = { tenant: ana.tenant, uid: uidOf(ana.tenant, 0) };
    const { status } = await ana.call(id as Id, { params, query });
    expect(status).toBe(200);
    const queries = database.takeQueries();
    expect(queries.length).toBeGreaterThanOrEqual(2);
    for (const statement of queries) {
      const plan = await database.planOf(statement);
      const expected = whole !== undefined && plan.text.includes(" INDEX ") ? [whole] : [];
      expect(plan.scans, plan.text).toEqual(expected);
      // The plan may sort the tags of a page's rows, the members of a page's namespaces, or the few rows that a filter
      // has found.
      if (!sorted && !/^WITH |[`"]position[`"] ASC|[`"]addedAt[`"] ASC/.test(statement.sql))
        expect(plan.sorts, plan.text).toBe(false);
    }
  });
});
