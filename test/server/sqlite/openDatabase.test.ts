import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import type { Database } from "../../../server/db/Database.ts";
import { migrationsFolder, readMigrations } from "../../../server/db/migrations/migrations.ts";
import { openDatabase } from "../../../server/db/openDatabase.ts";
import { readRows, sql } from "../../../server/db/sql/sql.ts";
import { nameIndexLookup } from "../../../server/features/devices/nameIndexLookup.ts";
import { testFolder } from "../../support/folder.ts";
import { insertDevices, uidOfMany } from "../db/manyDevices.ts";
import { device, user } from "../db/rows.ts";

async function testDatabase() {
  const file = join(testFolder(), "gatehouse.db");
  const database = await openDatabase({ file });
  onTestFinished(() => database.close());
  return { ...database, file };
}

test("runs in WAL mode, with every commit on the disk, and with foreign keys", async () => {
  const { client } = await testDatabase();
  const pragma = async (name: string) => {
    const [row] = await client.$queryRawUnsafe<Record<string, unknown>[]>(`PRAGMA ${name}`);
    return Object.values(row ?? {})[0];
  };
  expect(await pragma("journal_mode")).toBe("wal");
  expect(await pragma("synchronous")).toBe(2);
  expect(await pragma("foreign_keys")).toBe(1);
  expect(await pragma("busy_timeout")).toBeGreaterThan(0);
});

test("is readable only by its user", async () => {
  const { file, client } = await testDatabase();
  await client.user.create({ data: user("ann") });
  for (const path of [file, `${file}-wal`]) expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("returns the written data after it is opened again", async () => {
  const file = join(testFolder(), "gatehouse.db");
  const first = await openDatabase({ file });
  expect(first.migrated).toEqual(readMigrations(migrationsFolder("sqlite")).map(({ name }) => name));
  const data = { ...user("ann"), emailMarketing: true, maxNamespaces: 3, mfaSecret: null };
  await first.client.user.create({ data });
  await first.client.namespace.create({
    data: { tenantId: "t", name: "lab", ownerId: "ann", createdAt: data.createdAt },
  });
  await first.client.device.create({
    data: device("t", "d", data.createdAt, { latitude: -30.25, longitude: 51 }),
  });
  await first.close();

  const second = await openDatabase({ file });
  expect(second.migrated).toEqual([]);
  expect(await second.client.user.findUnique({ where: { email: "ann@example.com" } })).toMatchObject(data);
  expect(await second.client.device.findFirst()).toMatchObject({
    latitude: -30.25,
    longitude: 51,
    offline: false,
    lastSeen: data.createdAt,
  });
  expect(await second.client.device.aggregate({ _count: true, _max: { lastSeen: true } })).toEqual({
    _count: 1,
    _max: { lastSeen: data.createdAt },
  });
  await second.close();
});

test("orders and compares times", async () => {
  const { client } = await testDatabase();
  const times = ["2026-01-01T00:00:00.000Z", "2025-12-31T23:59:59.999Z", "2026-01-01T00:00:00.001Z"];
  for (const [index, time] of times.entries()) {
    await client.user.create({ data: { ...user(`user${index}`), createdAt: new Date(time) } });
  }
  const later = await client.user.findMany({
    where: { createdAt: { gte: new Date("2026-01-01T00:00:00Z") } },
    orderBy: { createdAt: "desc" },
  });
  expect(later.map((found) => found.id)).toEqual(["user2", "user0"]);
});

test("reports violated constraints with Prisma's codes", async () => {
  const { client } = await testDatabase();
  await client.user.create({ data: user("ann") });
  await expect(
    client.user.create({ data: { ...user("bob"), email: "ann@example.com" } }),
  ).rejects.toMatchObject({ code: "P2002" });
  await expect(client.user.create({ data: user("ann") })).rejects.toMatchObject({ code: "P2002" });
  await expect(
    client.namespace.create({
      data: { tenantId: "t", name: "lab", ownerId: "missing", createdAt: new Date() },
    }),
  ).rejects.toMatchObject({ code: "P2003" });
  await expect(client.user.update({ where: { id: "missing" }, data: { name: "x" } })).rejects.toMatchObject({
    code: "P2025",
  });
});

test("keeps values of a failed call out of its error", async () => {
  const { client } = await testDatabase();
  await client.user.create({ data: user("ann") });
  const failure = await client.user
    .create({ data: { ...user("ann"), passwordHash: "do-not-show" } })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Error);
  expect(`${failure} ${(failure as Error).stack} ${JSON.stringify(failure)}`).not.toContain("do-not-show");
});

test("rejects a second owner in the same process", async () => {
  const { file, client } = await testDatabase();
  await expect(openDatabase({ file })).rejects.toThrow(`The database ${file} is in use by another process`);
  await client.user.create({ data: user("ann") });
});

test("rejects a file that is not a database", async () => {
  const file = join(testFolder(), "gatehouse.db");
  writeFileSync(file, "This is a text, and it is long enough to be taken for a header. ".repeat(20));
  await expect(openDatabase({ file })).rejects.toThrow(`${file} is not a SQLite database`);
});

test("reports the file if it cannot be opened", async () => {
  const file = join(testFolder(), "missing", "gatehouse.db");
  await expect(openDatabase({ file })).rejects.toThrow(`Cannot open the database ${file}`);
});

test("finds existing devices by their names, and stores no index of them in the file", async () => {
  const file = join(testFolder(), "gatehouse.db");
  const search = async ({ client }: Database) => {
    const lead = nameIndexLookup({ db: client }, "t", "ate-");
    if (lead === undefined) throw new Error("there is no index");
    const query = sql`SELECT "uid" FROM "Device" WHERE ${lead.column} IN (${lead.candidates}) ORDER BY "uid"`;
    return (await readRows<{ uid: string }>(client, query)).map(({ uid }) => uid);
  };
  const first = await openDatabase({ file });
  const { createdAt } = await first.client.user.create({ data: user("ann") });
  await first.client.namespace.create({ data: { tenantId: "t", name: "lab", ownerId: "ann", createdAt } });
  await insertDevices(first.client, "t", [1, 5]);
  for (const n of [2, 3, 4])
    await first.client.device.update({ where: { uid: uidOfMany(n) }, data: { name: `gate-${n}` } });
  await first.client.device.delete({ where: { uid: uidOfMany(3) } });
  expect(await search(first)).toEqual([2, 4].map(uidOfMany));
  await first.close();
  const plain = new Sqlite(file);
  const tables = plain.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'DeviceName%'").all();
  plain.close();
  expect(tables).toEqual([]);
  const second = await openDatabase({ file });
  onTestFinished(() => second.close());
  expect(await search(second)).toEqual([2, 4].map(uidOfMany));
});
