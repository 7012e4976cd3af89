import fc from "fast-check";
import { expect, test } from "vitest";
import { postgresqlAddress } from "../../support/postgresql/database.ts";
import { insertDevices, uidOfMany } from "../db/manyDevices.ts";
import { device } from "../db/rows.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { encodeFilter, property, valuesOf } from "../http/testApp.ts";

const { app, ana } = withAppAndUser();

/**
 * The characters of generated names. The set is small, so that names share parts. Some characters are special in
 * indexes, patterns or case folding.
 */
const CHARACTERS = [..."aAbBkK1-_%\\\"'. ", "é", "É", "\u212a", "ı", "İ", "ß", "漢", "🚪"];
const character = fc.constantFrom(...CHARACTERS);
const name = fc.oneof(
  fc.string({ unit: character, maxLength: 12 }),
  fc.string({ unit: fc.constantFrom("a", "b", "1", "-"), minLength: 3, maxLength: 24 }),
);

async function insert(tenantId: string, names: readonly string[], from = 0): Promise<void> {
  const now = app.services.now();
  await app.services.db.device.createMany({
    data: names.map((name, n) => device(tenantId, uidOfMany(from + n), now, { name })),
  });
}

async function search(part: string): Promise<string[]> {
  const query = { filter: encodeFilter([property("name", "contains", part)]), per_page: 100 };
  const { status, body, headers } = await ana.call("getDevices", { query });
  expect(status).toBe(200);
  expect(headers.get("x-total-count")).toBe(String(body.length));
  return valuesOf(body, "uid").sort();
}

/** Searches for a part of a name without an index: the query compares every name. */
async function searchEach(part: string): Promise<string[]> {
  const rows = await app.services.db.$queryRaw<{ uid: string }[]>`SELECT "uid" FROM "Device"
    WHERE "tenantId" = ${ana.tenant} AND REPLACE(LOWER("name"), LOWER(${part}), '') <> LOWER("name")`;
  return rows.map(({ uid }) => uid).sort();
}

/** Generates parts of existing names in upper and lower case, and other texts. */
const partOf = (names: readonly string[]) =>
  fc
    .oneof(
      fc
        .tuple(fc.constantFrom(...names), fc.nat(9), fc.integer({ min: 1, max: 20 }))
        .map(([name, start, length]) => [...name].slice(start, start + length).join("") || "a"),
      fc.string({ unit: character, minLength: 1, maxLength: 6 }),
    )
    .chain((part) => fc.constantFrom(part, part.toUpperCase(), part.toLowerCase()));

const searches = fc
  .record({
    created: fc.array(name, { minLength: 1, maxLength: 20 }),
    renamed: fc.array(fc.tuple(fc.nat(19), name), { maxLength: 8 }),
    deleted: fc.array(fc.nat(19), { maxLength: 5 }),
  })
  .chain(({ created, renamed, deleted }) => {
    const parts = partOf([...created, ...renamed.map(([, name]) => name)]);
    return fc.record({
      created: fc.constant(created),
      renamed: fc.constant(renamed),
      deleted: fc.constant(deleted),
      parts: fc.array(parts, { minLength: 1, maxLength: 8 }),
    });
  });

const onPostgresql = postgresqlAddress() !== undefined;

/** Drops the other indexes, so that PostgreSQL uses the index of name parts in spite of the few names. */
async function dropOtherIndexes(): Promise<void> {
  const { db } = app.services;
  const indexes = await db.$queryRaw<{ name: string }[]>`SELECT indexname AS name FROM pg_indexes
    WHERE tablename = 'Device' AND indexname LIKE 'Device\\_tenantId\\_%'`;
  for (const { name } of indexes) await db.$executeRawUnsafe(`DROP INDEX "${name}"`);
}

/** Returns how often PostgreSQL has used the index of name parts. */
async function searchesByIndex(): Promise<number> {
  const rows = await app.services.db.$queryRaw<
    { count: bigint }[]
  >`SELECT idx_scan AS count FROM pg_stat_user_indexes
    WHERE indexrelname = 'Device_name_trgm_idx'`;
  return Number(rows[0]?.count);
}

test("finds the same devices with a search as with a comparison of each name", async () => {
  const { db } = app.services;
  if (onPostgresql) await dropOtherIndexes();
  await fc.assert(
    fc.asyncProperty(searches, async ({ created, renamed, deleted, parts }) => {
      await db.device.deleteMany();
      await insert(ana.tenant, created);
      for (const part of parts) expect(await search(part)).toEqual(await searchEach(part));
      for (const [n, name] of renamed)
        await db.device.updateMany({ where: { uid: uidOfMany(n) }, data: { name } });
      await db.device.deleteMany({ where: { uid: { in: deleted.map(uidOfMany) } } });
      for (const part of parts) expect(await search(part)).toEqual(await searchEach(part));
    }),
    { numRuns: 25 },
  );
  if (onPostgresql) await expect.poll(searchesByIndex).toBeGreaterThan(25);
});

test("finds no devices that were deleted with their namespace, and all after a failed transaction", async () => {
  const { db } = app.services;
  const eve = await app.user("eve", "eves");
  await insert(eve.tenant, ["gate-1", "gate-2"]);
  await insert(ana.tenant, ["gate-3"], 2);
  const failing = db.$transaction(async (tx) => {
    await tx.device.deleteMany();
    await tx.namespace.update({ where: { tenantId: ana.tenant }, data: { name: "renamed" } });
    throw new Error("rolled back");
  });
  await expect(failing).rejects.toThrow("rolled back");
  expect(await search("gate-")).toEqual([uidOfMany(2)]);
  await eve.call("deleteNamespace");
  await insert(ana.tenant, ["post-4", "gate-5"], 3);
  expect(await search("gate-")).toEqual([uidOfMany(2), uidOfMany(4)]);
});

test("finds devices if another namespace has thousands of similar names", async () => {
  const eve = await app.user("eve", "eves");
  await insertDevices(app.services.db, eve.tenant, [1000, 7000]);
  await insert(ana.tenant, ["host-1", "post-1", "host-2"]);
  expect(await search("host-")).toEqual([uidOfMany(0), uidOfMany(2)]);
  expect(await search("host-2")).toEqual([uidOfMany(2)]);
});
