import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { foldDeviceCounts } from "../../../server/features/devices/deviceCounts.ts";
import { expectExactCounts } from "../db/deviceCounts.ts";
import { user } from "../db/rows.ts";
import { connect as connectTo, newDatabase } from "./clients.ts";

const TENANT = "00000000-0000-4000-8000-000000000001";
const NOW = new Date("2026-01-02T03:04:05.678Z");

const connect = (url: string) => connectTo(url, { options: "-c enable_seqscan=off" });

async function open(url: string) {
  const database = await openDatabase({ url, connections: 3 });
  onTestFinished(() => database.close());
  return database.client;
}

async function makeNamespace(client: Client): Promise<void> {
  const { id, username, name, email, passwordHash, createdAt } = user("ana");
  await client.query(
    'INSERT INTO "User" ("id", "username", "name", "email", "passwordHash", "createdAt") VALUES ($1, $2, $3, $4, $5, $6)',
    [id, username, name, email, passwordHash, createdAt],
  );
  await client.query(
    'INSERT INTO "Namespace" ("tenantId", "name", "ownerId", "createdAt") VALUES ($1, $2, $3, $4)',
    [TENANT, "lab", id, NOW],
  );
}

const ENROLL = `INSERT INTO "public"."Device" ("uid", "tenantId", "name", "mac", "infoId", "infoPrettyName", "infoVersion",
  "infoArch", "infoPlatform", "publicKey", "status", "statusUpdatedAt", "createdAt", "lastSeen")
  VALUES ($1, $2, $1, $1, '', '', '', '', $3, '', 'pending', $4, $4, $4)`;
const ACCEPT = `UPDATE "public"."Device" SET "status" = 'accepted', "statusUpdatedAt" = $2 WHERE "uid" = $1`;
const DELETE = 'DELETE FROM "public"."Device" WHERE "uid" = $1';

const enroll = (client: Client, uid: string, platform = "native") =>
  client.query(ENROLL, [uid, TENANT, platform, NOW]);

/** Runs transactions one after another, until `end` is called. */
function writeContinuously(client: Client, name: string) {
  let ending = false;
  let written = 0;
  const write = async (n: number) => {
    const uid = `${name}-${n}`;
    await client.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
    await client.query('LOCK TABLE "_migration" IN ROW SHARE MODE');
    await enroll(client, uid, n % 3 === 0 ? "connector" : "native");
    if (n % 2 === 0) await client.query(ACCEPT, [uid, NOW]);
    if (n % 5 === 0) await client.query(DELETE, [uid]);
    await client.query("COMMIT");
    written += 1;
  };
  const work = async () => {
    while (!ending) {
      await write(written).catch(async (error: { readonly code?: string }) => {
        await client.query("ROLLBACK");
        if (error.code !== "40001") throw error;
      });
    }
  };
  const done = work();
  return {
    end: () => {
      ending = true;
      return done;
    },
    /** Waits until the given number of further transactions has been committed. */
    more: (count: number) => {
      const from = written;
      return expect.poll(() => written - from).toBeGreaterThanOrEqual(count);
    },
  };
}

test("counts concurrent writes of several instances", async () => {
  const { url, client } = await withNamespace();
  const writers = [writeContinuously(client, "one"), writeContinuously(await connect(url), "other")];
  for (const { more } of writers) await more(20);
  for (const { end } of writers) await end();
  const db = await open(url);
  expect(await db.deviceCount.count({ where: { slot: { gt: 0 } } })).toBeGreaterThan(0);
  await expectExactCounts(db);
});

async function withNamespace() {
  const url = await newDatabase();
  const client = await connect(url);
  await makeNamespace(client);
  return { url, client };
}

test("concurrent enrollments do not wait for each other's counts", async () => {
  const { url, client } = await withNamespace();
  const other = await connect(url);
  for (const each of [client, other]) await each.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
  await enroll(client, "a");
  await enroll(other, "b");
  for (const each of [client, other]) await each.query("COMMIT");
  await expectExactCounts(await open(url));
});

test("several instances can fold the counts of ended connections at the same time", async () => {
  const { url, client } = await withNamespace();
  const ENDED = 4;
  await enroll(client, "a");
  for (let n = 0; n < ENDED; n += 1) {
    const other = new Client(url);
    await other.connect();
    await enroll(other, `other-${n}`, n % 2 === 0 ? "connector" : "native");
    await other.query(ACCEPT, [`other-${n}`, NOW]);
    await other.end();
  }
  await client.query(DELETE, ["other-0"]);
  const instances = [await open(url), await open(url), await open(url)];
  const [db] = instances as [(typeof instances)[number]];
  const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
  // PostgreSQL still lists a closed connection for a short time. The test therefore folds the counts repeatedly, until
  // only the row of the open connection remains.
  await expect
    .poll(async () => {
      await Promise.all(instances.map((one) => foldDeviceCounts({ db: one })));
      const kept = await db.deviceCount.findMany({ where: { slot: { gt: 0 } } });
      return [...new Set(kept.map(({ slot }) => slot))];
    })
    .toEqual([rows[0].pid]);
  await expectExactCounts(db);
});

test("folding skips a namespace whose deletion is in progress, and does not wait for it", async () => {
  const { url, client } = await withNamespace();
  const other = new Client(url);
  await other.connect();
  await enroll(other, "a");
  await other.end();
  const db = await open(url);
  await client.query("BEGIN");
  await client.query('DELETE FROM "Namespace"');
  await foldDeviceCounts({ db });
  expect(await db.deviceCount.count({ where: { slot: { gt: 0 } } })).toBe(1);
  await client.query("COMMIT");
  await foldDeviceCounts({ db });
  expect(await db.deviceCount.count()).toBe(0);
});
