/**
 * PostgreSQL chooses query plans by its statistics, so these tests need a hundred thousand rows.
 * sqlite/queryPlans.test.ts tests the plans of SQLite.
 *
 * @module-tag long
 */
import type { Operations } from "@gatehouse-access/sdk/contract";
import { beforeAll, describe, expect, test } from "vitest";
import { shared } from "../../support/shared.ts";
import { withSharedApp } from "../http/appOfTest.ts";
import { startInternalApp } from "../http/internalTestApp.ts";
import { enroll, type TestUser } from "../http/testApp.ts";
import { fill, uidOf } from "../plans/fill.ts";
import { LISTS } from "../plans/forms.ts";
import type { RecordingDatabase } from "../plans/recording.ts";
import { openRecordingPostgresql } from "./queryPlans.ts";

type Id = keyof Operations;

/** Number of rows of each kind in each namespace. */
const ROWS = 2000;
const NAMESPACES = 5;

const app = withSharedApp({ edition: "cloud", maximumPendingDevices: 10 * ROWS }, async (location) => {
  database = await openRecordingPostgresql(location);
  return database;
});
const internal = shared(() => startInternalApp(app));
let database: RecordingDatabase;
let ana: TestUser;

beforeAll(async () => {
  ana = await app.user("ana", "lab");
  const others = Array.from({ length: NAMESPACES - 1 }, (_, n) => app.user(`user-${n}`, `space-${n}`));
  for (const user of [ana, ...(await Promise.all(others))]) await fill(app, user, ROWS);
  await app.services.db.$executeRaw`ANALYZE`;
});

async function plansOf(send: () => Promise<unknown>) {
  database.takeQueries();
  await send();
  return Promise.all(
    database
      .takeQueries()
      .filter((query) => /^(SELECT|WITH|UPDATE|DELETE)\b/.test(query.sql))
      .map((query) => database.planOf(query)),
  );
}

describe.each(Object.entries(LISTS))("%s", (id, forms) => {
  test.each(forms)("reads no whole table: $name", async ({ query, whole }) => {
    const plans = await plansOf(async () => {
      const options = { token: ana.token, params: { tenant: ana.tenant, uid: uidOf(ana.tenant, 0) }, query };
      expect((await app.call(id as Id, options)).status).toBe(200);
    });
    expect(plans).not.toEqual([]);
    for (const plan of plans)
      expect(
        plan.scans.filter((table) => table !== whole),
        plan.text,
      ).toEqual([]);
  });
});

test("no whole table is read when a device enrolls, reports or is accepted, nor for a login to it", async () => {
  let uid = "";
  const report = async () => {
    ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01", { hostname: "web-1" }));
  };
  const query = { domain: "lab", name: "web-1", username: "root", ip_address: "10.0.0.7" };
  const steps = [
    report,
    report,
    () => ana.call("acceptDevice", { params: { uid } }),
    () => ana.call("getDevice", { params: { uid } }),
    () => internal.call("lookupDevice", { query: { domain: "lab", name: "web-1" } }),
    () => internal.call("evaluateFirewall", { query }),
  ];
  for (const step of steps) {
    for (const plan of await plansOf(step)) expect(plan.scans, plan.text).toEqual([]);
  }
});
