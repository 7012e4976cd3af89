import { setTimeout as wait } from "node:timers/promises";
import { Client } from "pg";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { inTransaction } from "../../../server/db/sql/transaction.ts";
import { passGate } from "../../../server/db/sql/transactionGate.ts";
import { answerTo } from "../../../server/errors.ts";
import { DENY_RULE, enroll, startApp, type TestApp, type TestUser } from "../http/testApp.ts";
import { connect } from "./clients.ts";

let app: TestApp;
let ana: TestUser;
let url: string;
beforeEach(async () => {
  app = await startApp({ maximumFirewallRules: 100 }, (location) => {
    if ("url" in location) url = location.url;
    return openDatabase(location);
  });
  ana = await app.user("ana", "lab");
});
afterEach(() => app.stop());

const rule = (priority: number) => ({ ...DENY_RULE, priority });
const creations = {
  createFirewallRule: (n: number) => rule(n + 1),
  createApiKey: (n: number) => ({ name: `key-${n}`, expires_at: 30 }),
};

/** Opens a separate database connection, begins a serializable transaction on it, and runs a first statement. */
async function otherTransaction(first: string): Promise<Client> {
  const client = await connect(url);
  // The connection is interrupted when the test ends.
  client.on("error", () => {});
  await client.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
  await client.query(first);
  return client;
}

test.each(Object.entries(creations))("%s locks no whole table", async (id, bodyOf) => {
  const create = async (n: number) => {
    const body = bodyOf(n);
    expect((await ana.call(id as keyof typeof creations, { body })).status).toBe(200);
  };
  await create(1);
  // After this statement, the planner knows that all tables are small.
  await app.services.db.$executeRaw`ANALYZE`;
  // PostgreSQL keeps the read locks of an ended transaction while a concurrent transaction is still open.
  const watcher = await otherTransaction("SELECT 1");
  await create(2);
  // The server also has the databases of other tests, whose tables have the same ids.
  const { rows } = await watcher.query(
    `SELECT relname AS name, relkind = 'r' AND locktype = 'relation' AS whole
    FROM pg_locks JOIN pg_class ON pg_class.oid = relation JOIN pg_database ON pg_database.oid = database
    WHERE mode = 'SIReadLock' AND datname = current_database()`,
  );
  expect(rows).not.toEqual([]);
  expect(rows.filter(({ whole }) => whole)).toEqual([]);
});

test("concurrent creations that count existing objects share transactions in a namespace, and none is retried", async () => {
  const CREATIONS = 12;
  const statements = vi.spyOn(Client.prototype, "query");
  onTestFinished(() => statements.mockRestore());
  const create = (n: number) => ana.call("createFirewallRule", { body: rule(n + 1) });
  const answers = await Promise.all(Array.from({ length: CREATIONS }, (_, n) => create(n)));
  expect(answers.map(({ status }) => status)).toEqual(Array(CREATIONS).fill(200));
  const sent = (text: string) => statements.mock.calls.filter(([query]) => String(query).startsWith(text));
  expect(sent("BEGIN").length).toBeLessThan(CREATIONS);
  expect(sent("COMMIT")).toHaveLength(sent("BEGIN").length);
});

test("each of many conflicting transactions succeeds", async () => {
  const { tenant: tenantId } = ana;
  const WRITERS = 40;
  const add = () =>
    inTransaction(app.services, async (tx) => {
      const { maxDevices } = await tx.namespace.findUniqueOrThrow({ where: { tenantId } });
      // Waits between the read and the write, so that the transactions overlap.
      await wait(50);
      await tx.namespace.update({ where: { tenantId }, data: { maxDevices: maxDevices + 1 } });
    });
  await Promise.all(Array.from({ length: WRITERS }, add));
  const { maxDevices } = await app.services.db.namespace.findUniqueOrThrow({ where: { tenantId } });
  expect(maxDevices).toBe(-1 + WRITERS);
});

test("statements that change many devices succeed despite conflicts: reports, and the end of an instance", async () => {
  const { db, heartbeats } = app.services;
  const { uid } = await enroll(app, ana.tenant, "00:00:00:00:00:01");
  await db.device.update({ where: { uid }, data: { instanceId: app.gateway.instances.id } });
  // Every second update of devices fails with a deadlock, as if another transaction locked the rows in another order.
  await db.$executeRaw`CREATE SEQUENCE "deadlocks"`;
  await db.$executeRaw`CREATE FUNCTION "deadlock"() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('deadlocks') % 2 = 1 THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;
      RETURN NULL;
    END $$`;
  await db.$executeRaw`CREATE TRIGGER "deadlock" BEFORE UPDATE ON "Device" EXECUTE FUNCTION "deadlock"()`;
  const later = new Date(Date.now() + 60_000);
  heartbeats.beat(uid, later);
  await heartbeats.flush();
  await app.gateway.stop();
  const { lastSeen, instanceId, offline } = await db.device.findUniqueOrThrow({ where: { uid } });
  expect({ lastSeen, instanceId, offline }).toEqual({ lastSeen: later, instanceId: null, offline: true });
  expect(await db.$queryRaw`SELECT nextval('deadlocks')`).toEqual([{ nextval: 5n }]);
});

test("a transaction that must run alone fails if another transaction does not end", async () => {
  const { db } = app.services;
  await otherTransaction('LOCK TABLE "_migration" IN ROW SHARE MODE');
  const alone = db.$transaction((tx) => passGate(db, tx, true), { timeout: 20_000 });
  const error = await alone.catch((reason: unknown) => reason);
  expect(answerTo(error)).toMatchObject({ status: 503 });
  await db.$transaction((tx) => passGate(db, tx, false));
});
