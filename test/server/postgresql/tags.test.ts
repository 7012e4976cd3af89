import type { Client } from "pg";
import { beforeEach, expect, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { removeUnusedTags } from "../../../server/features/tags/tagUpkeep.ts";
import { testApp } from "../http/appOfTest.ts";
import { DENY_RULE, enroll, type TestApp, type TestUser } from "../http/testApp.ts";
import { connect } from "./clients.ts";

let app: TestApp;
let ana: TestUser;
let url: string;
let uid: string;

beforeEach(async () => {
  app = await testApp({}, (location) => {
    if ("url" in location) url = location.url;
    return openDatabase(location);
  });
  ana = await app.user("ana", "lab");
  ({ uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
});

/** Opens the connection of another instance, which begins a transaction as the service does. */
async function otherInstance(): Promise<Client> {
  const client = await connect(url, { options: "-c enable_seqscan=off" });
  await client.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
  await client.query('LOCK TABLE "_migration" IN ROW SHARE MODE');
  return client;
}

/** Waits until a statement waits for a lock of another transaction. */
async function untilBlocked(client: Client): Promise<void> {
  const waiting = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'DELETE FROM "Tag"%'`;
  await expect.poll(async () => (await client.query(waiting)).rowCount).toBe(1);
}

const tag = (...tags: string[]) => ana.call("updateDeviceTags", { params: { uid }, body: { tags } });
const tagsOf = async () => (await ana.call("getDevice", { params: { uid } })).body.tags;

test("a tag that another instance gives to a device stays, although its row is about to be removed as unused", async () => {
  await tag("edge");
  await tag("core");
  const other = await otherInstance();
  const { rows } = await other.query(`SELECT "id" FROM "Tag" WHERE "name" = 'edge'`);
  await other.query(
    'INSERT INTO "DeviceTagUse" ("deviceUid", "tenantId", "tagId", "position") VALUES ($1, $2, $3, 1)',
    [uid, ana.tenant, rows[0].id],
  );
  const removed = removeUnusedTags(app.services);
  await untilBlocked(await connect(url));
  await other.query("COMMIT");
  await removed;
  expect(await tagsOf()).toEqual(["core", "edge"]);
});

test("a transaction of another instance reads a renamed tag on all objects with its old name", async () => {
  await tag("edge");
  await ana.call("createFirewallRule", { body: { ...DENY_RULE, filter: { tags: ["edge"] } } });
  const other = await otherInstance();
  const read = async () => {
    const ofDevice = await other.query('SELECT "tag" FROM "DeviceTag"');
    const ofRule = await other.query('SELECT "tag" FROM "FirewallRuleTag"');
    return [ofDevice.rows, ofRule.rows].map((list) => list.map((row) => row.tag));
  };
  const first = await other.query('SELECT "tag" FROM "DeviceTag"');
  expect(first.rows).toEqual([{ tag: "edge" }]);
  const renamed = await ana.call("renameTag", { params: { tag: "edge" }, body: { tag: "rim" } });
  expect(renamed.status).toBe(200);
  expect(await read()).toEqual([["edge"], ["edge"]]);
  await other.query("COMMIT");
  expect(await read()).toEqual([["rim"], ["rim"]]);
});
