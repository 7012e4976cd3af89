import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Database } from "../../../server/db/Database.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { copyToPostgresql } from "../../../server/db/postgresql/copyFromSqlite.ts";
import { openSqlite } from "../../../server/db/sqlite/open.ts";
import { testFolder } from "../../support/folder.ts";
import { expectExactCounts } from "../db/deviceCounts.ts";
import { device, user } from "../db/rows.ts";
import { emptyDatabase, query } from "./clients.ts";

/** Creates, fills and closes a SQLite database. */
async function source(fill: (client: Database["client"]) => Promise<unknown>) {
  const file = join(testFolder(), "gatehouse.db");
  const database = await openDatabase({ file });
  await fill(database.client);
  await database.close();
  const sqlite = openSqlite(file);
  onTestFinished(() => void sqlite.close());
  return { sqlite, file };
}

const at = new Date("2026-01-02T03:04:05.678Z");
const audit = { requestId: "r", address: "", actorKind: "user", actorId: "a", actorName: "a" };

/** Creates one row of every model, with values that an inexact conversion would change. */
async function fillAll(client: Database["client"]): Promise<void> {
  const ann = {
    ...user("ann"),
    name: 'Ann "O\'Neil" \\ 漢字 🚪\n\t',
    emailMarketing: true,
    mfaSecret: "sealed",
    mfaLastStep: 58_000_000,
    tokenVersion: 3,
    lastLogin: at,
  };
  await client.user.createMany({ data: [ann, user("bob")] });
  await client.recoveryCode.create({ data: { userId: "ann", digest: "d", disablesUntil: at } });
  const reset = { mainDigest: "m", recoveryDigest: "r", userId: "ann", expiresAt: at };
  await client.mfaReset.create({ data: reset });
  const mailed = { userId: "ann", purpose: "recovery", digest: "d", expiresAt: at };
  await client.mailToken.create({ data: mailed });
  await client.outgoingMail.create({ data: { id: "o", sealed: "sealed", createdAt: at, dueAt: at } });
  await client.samlIdentity.create({ data: { issuer: "i", nameId: "漢字", userId: "ann" } });
  await client.usedSamlMessage.create({ data: { digest: "d", expiresAt: at } });
  await client.mfaChallenge.create({ data: { userId: "ann", digest: "d", expiresAt: at } });
  await client.loginFailure.create({ data: { source: "s", subject: "t", attempts: 2, expiresAt: at } });
  await client.rateLimit.create({ data: { key: "login as x", count: 3, endsAt: 1_900_000_000_123n } });
  await client.instance.create({ data: { id: "i", peerUrl: "http://10.0.0.1:8081", lastSeen: at } });
  await client.terminalTicket.create({ data: { digest: "d", sealed: "sealed", expiresAt: at } });
  await client.retiredTenant.create({ data: { tenantId: "retired" } });
  await client.signingKey.create({ data: { kid: "k", sealed: "sealed", createdAt: at } });
  await client.namespace.create({
    data: {
      tenantId: "t",
      name: "lab",
      ownerId: "ann",
      createdAt: at,
      sessionRecord: false,
      creationKey: "",
    },
  });
  await client.member.create({
    data: { tenantId: "t", userId: "bob", role: "observer", addedAt: at, accessExpiresAt: at },
  });
  await client.device.create({
    data: device("t", "d", at, { name: "pi", latitude: -30.123456789012344, longitude: 0.1, offline: true }),
  });
  await client.tag.createMany({
    data: [
      { id: "used", tenantId: "t", name: "edge" },
      { id: "deleted", name: "core" },
    ],
  });
  await client.deviceTagUse.create({ data: { deviceUid: "d", tenantId: "t", tagId: "used", position: 0 } });
  const engine = { address: "10.0.0.5", port: 2376, enable: false, secure: true, sealedTls: "sealed" };
  await client.connector.create({ data: { ...engine, uid: "c", tenantId: "t", createdAt: at } });
  await client.announcement.create({ data: { uuid: "a", title: "News", content: "# Text\n", date: at } });
  const forward = { host: "::1", port: 80, ttl: 9_223_372_036n, createdAt: at, expiresAt: at };
  await client.tunnel.create({ data: { ...forward, address: "0", tenantId: "t", deviceUid: "d" } });
  const key = { tenantId: "t", fingerprint: "f" };
  await client.publicKey.create({
    data: { ...key, name: "k", data: "ssh-…", username: ".*", createdAt: at, expiresAt: at, ownerId: "bob" },
  });
  await client.publicKeyTagUse.create({ data: { ...key, tagId: "used", position: 0 } });
  const rule = { tenantId: "t", action: "deny", active: true, priority: 1, sourceIp: ".*", username: ".*" };
  await client.firewallRule.createMany({ data: [{ ...rule, expiresAt: at }, rule, rule] });
  await client.firewallRuleTagUse.create({
    data: { tenantId: "t", ruleId: 1, tagId: "used", position: 0 },
  });
  await client.firewallRule.delete({ where: { id: 3 } });
  await client.privateKey.create({
    data: { fingerprint: "p", sealed: "sealed", createdAt: at, expiresAt: at },
  });
  const entry = { ...audit, at, operation: "o", objectKind: "k", objectId: "i" };
  await client.auditEntry.createMany({
    data: [entry, { ...entry, tenantId: "t", before: '{"a":"\\\\u0041"}' }],
  });
  await client.session.create({
    data: {
      uid: "s",
      tenantId: "t",
      deviceUid: "d",
      username: "root",
      ipAddress: "::1",
      type: "web",
      term: "xterm",
      startedAt: at,
      lastSeen: at,
      authenticated: true,
      recorded: true,
      recordedSize: 130,
      records: 1,
    },
  });
  const record = { sessionUid: "s", seat: 0, sequence: 1, time: at, width: 4_294_967_295n, height: 24n };
  await client.sessionRecord.create({ data: { ...record, message: '"\\u0000\\ud83d"' } });
  await client.sessionEvent.create({
    data: { sessionUid: "s", sequence: 1, seat: 0, type: "shell", at, data: "{}" },
  });
  const apiKey = { tenantId: "t", role: "observer", createdBy: "ann", createdAt: at, updatedAt: at };
  await client.apiKey.createMany({
    data: [
      { ...apiKey, digest: "1", name: "for ever", expiresIn: -1n },
      { ...apiKey, digest: "2", name: "late", expiresIn: 253_402_300_799n },
    ],
  });
  await client.trustedWorkload.create({
    data: {
      id: "w",
      tenantId: "t",
      name: "deploy",
      issuer: "https://issuer.example.org",
      audience: "a",
      claims: '{"ref":"refs/heads/*"}',
      role: "observer",
      maxSessionMinutes: 60,
      singleUse: true,
      createdBy: "ann",
      createdAt: at,
      updatedAt: at,
    },
  });
  await client.tokenUse.create({
    data: { issuer: "https://issuer.example.org", digest: "d", workloadId: "w", expiresAt: at },
  });
  await fillBilling(client, at);
}

async function fillBilling(client: Database["client"], at: Date): Promise<void> {
  const customerId = "cus_1";
  const end = { currentPeriodEnd: 253_402_300_799n, freeDevices: 3 };
  await client.billing.create({ data: { tenantId: "t", customerId, ...end, createdAt: at, updatedAt: at } });
  await client.ledgerCustomer.create({
    data: { id: customerId, key: "k", name: "lab", email: "ann@example.com", createdAt: at },
  });
  const expiry = { expMonth: 10, expYear: 2030, isDefault: true, attachedAt: at };
  await client.ledgerPaymentMethod.create({
    data: { customerId, id: "pm_1", brand: "visa", last4: "0042", ...expiry },
  });
  const months = { month: 0, devices: 2, createdAt: at };
  await client.ledgerSubscription.create({
    data: { id: "sub_1", key: "k", customerId, status: "active", peak: 3, periodEnd: at, ...months },
  });
  const amount = { amount: 9_000_000_000n, currency: "usd", status: "open" };
  await client.ledgerInvoice.create({
    data: { id: "in_1", subscriptionId: "sub_1", customerId, ...amount, ...months },
  });
}

/** The models that are views of other tables. */
const VIEWS = ["deviceTag", "publicKeyTag", "firewallRuleTag"];

/** Returns all rows of all tables and views, as the service reads them. */
async function content({ client }: Database): Promise<Record<string, unknown[]>> {
  const models = Object.entries(client).filter(
    (entry): entry is [string, { findMany(): Promise<object[]> }] =>
      !entry[0].startsWith("$") && !entry[0].startsWith("_") && typeof entry[1]?.findMany === "function",
  );
  const rows = await Promise.all(
    models.map(async ([name, model]) => {
      const found = await model.findMany();
      return [name, found.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))] as const;
    }),
  );
  return Object.fromEntries(rows);
}

const keyOf = (row: object) =>
  JSON.stringify(row, (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value));

test("copies every row of every table unchanged, and continues the ids after the last one", {
  tags: ["long"],
}, async () => {
  const { sqlite, file } = await source(fillAll);
  const url = await emptyDatabase();
  const seen: string[] = [];
  const copied = await copyToPostgresql(sqlite, url, (table, done, total) => {
    seen.push(`${table} ${done}/${total}`);
  });
  expect(copied.filter(({ rows }) => rows === 0)).toEqual([]);
  expect(seen).toContain("FirewallRule 2/2");
  sqlite.close();

  const before = await openDatabase({ file });
  onTestFinished(() => before.close());
  const after = await openDatabase({ url, connections: 2 });
  onTestFinished(() => after.close());
  expect(after.migrated).toEqual([]);
  const expected = await content(before);
  const { deviceCount: counts, recordingSize: sizes, ...arrived } = await content(after);
  // The migration does not copy the device counts and the sizes of recordings, but calculates them from the copied rows.
  expect(counts).toHaveLength(1);
  await expectExactCounts(after.client);
  expect(sizes).toMatchObject([{ tenantId: "t", size: 130n }]);
  delete expected.deviceCount;
  delete expected.recordingSize;
  expect(Object.keys(expected)).toHaveLength(copied.length + VIEWS.length);
  expect(arrived).toEqual(expected);
  for (const view of VIEWS) expect(expected[view], view).not.toEqual([]);

  const { id } = await after.client.firewallRule.create({
    data: { tenantId: "t", action: "deny", active: true, priority: 1, sourceIp: "", username: "" },
  });
  expect(id).toBe(4);
});

test("accepts an empty database with the newest schema, and rejects a database with rows without changing it", async () => {
  const { sqlite } = await source((client) => client.user.create({ data: user("ann") }));
  const url = await emptyDatabase();
  await (await openDatabase({ url, connections: 2 })).close();
  const copied = await copyToPostgresql(sqlite, url, () => {});
  expect(copied.find(({ name }) => name === "User")).toEqual({ name: "User", rows: 1 });
  await expect(copyToPostgresql(sqlite, url, () => {})).rejects.toThrow(
    /^The database postgresql:\/\/[^ ]+ is not empty: the table User has rows/,
  );
  expect(await query(url, 'SELECT count(*)::int AS n FROM "User"')).toEqual([{ n: 1 }]);
});

test("a row that PostgreSQL rejects undoes the whole copy, and the error does not contain the row", async () => {
  const { sqlite } = await source(async (client) => {
    await client.user.create({ data: user("ann") });
    await client.user.create({ data: { ...user("bob"), passwordHash: "do-not-show\u0000" } });
    await client.retiredTenant.create({ data: { tenantId: "retired" } });
  });
  const url = await emptyDatabase();
  const failure = await copyToPostgresql(sqlite, url, () => {}).catch((error: Error) => error);
  expect(failure).toMatchObject({ name: "DatabaseError" });
  expect((failure as Error).message).not.toContain("do-not-show");
  for (const table of ["User", "RetiredTenant"]) {
    expect(await query(url, `SELECT count(*)::int AS n FROM "${table}"`)).toEqual([{ n: 0 }]);
  }
});

test("rejects a database of an older version", async () => {
  const { sqlite } = await source(async () => {});
  sqlite.exec('DELETE FROM "_migration"');
  const url = await emptyDatabase();
  await expect(copyToPostgresql(sqlite, url, () => {})).rejects.toThrow("Start this version on it once");
  expect(await query(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toEqual([]);
});

test("reports an unreachable database without its password", async () => {
  const { sqlite } = await source(async () => {});
  const url = "postgresql://gate:pa55word@127.0.0.1:1/gate";
  const failure = await copyToPostgresql(sqlite, url, () => {}).catch((error: Error) => error);
  expect((failure as Error).message).toMatch(
    /^Cannot use the database postgresql:\/\/gate@127\.0\.0\.1:1\/gate: .*ECONNREFUSED/,
  );
});
