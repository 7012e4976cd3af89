import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import { readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";

/** A tag as a declared object. Its only declared field is the name. */
export const tagObject: ManagedObject<Declared> = {
  id: (_, { params, body, done }) => String((done && body.tag) || params.tag),
  find: async (tx, tenantId, tag) => ((await knownTags(tx, tenantId, [tag])).length > 0 ? { tag } : null),
  declared: (row) => row,
};

/** The tables that store the tags of devices, public keys and firewall rules. */
const TABLES = ["DeviceTag", "PublicKeyTag", "FirewallRuleTag"].map(sql.column);

/**
 * Returns the tags in use in the namespace, in alphabetical order (rules section 16.4).
 * @param among if set, returns only tags in this list
 */
export async function knownTags(
  tx: SqlClient,
  tenantId: string,
  among?: readonly string[],
): Promise<string[]> {
  const used = among
    ? among.map((tag) => ifUsed(tenantId, tag))
    : TABLES.map((table) => allIn(table, tenantId));
  const rows = await readRows<{ tag: string }>(tx, sql.join(used, " UNION "));
  return rows.map((row) => row.tag).sort();
}

const allIn = (table: Sql, tenantId: string): Sql =>
  sql`SELECT "tag" FROM ${table} WHERE "tenantId" = ${tenantId}`;

/** Returns a query that returns one row with the tag if an object uses the tag, or else no row. */
function ifUsed(tenantId: string, tag: string): Sql {
  const carried = TABLES.map((table) => sql`EXISTS (${allIn(table, tenantId)} AND "tag" = ${tag})`);
  return sql`SELECT CAST(${tag} AS TEXT) AS "tag" WHERE ${sql.join(carried, " OR ")}`;
}

async function everywhere(tx: SqlClient, statement: (table: Sql) => Sql): Promise<void> {
  for (const table of TABLES) await tx.$executeRaw(statement(table));
}

/** Renames a tag on all devices and in all filters of the namespace. */
export function renameEverywhere(tx: SqlClient, tenantId: string, from: string, to: string): Promise<void> {
  return everywhere(
    tx,
    (table) => sql`UPDATE ${table} SET "tag" = ${to} WHERE "tenantId" = ${tenantId} AND "tag" = ${from}`,
  );
}

/** Removes a tag from all devices and filters of the namespace. */
export async function deleteEverywhere(tx: SqlClient, tenantId: string, tag: string): Promise<void> {
  // `tagsDeclaredBy` contains the program resource that declares a device's tags. If this tag is the last tag of a
  // device, the service clears the column.
  await tx.$executeRaw(sql`UPDATE "Device" SET "tagsDeclaredBy" = NULL WHERE "tagsDeclaredBy" IS NOT NULL AND "uid" IN (
    SELECT "deviceUid" FROM "DeviceTag" WHERE "tenantId" = ${tenantId} AND "tag" = ${tag}
  ) AND NOT EXISTS (
    SELECT 1 FROM "DeviceTag" WHERE "DeviceTag"."deviceUid" = "Device"."uid" AND "DeviceTag"."tag" <> ${tag}
  )`);
  await everywhere(
    tx,
    (table) => sql`DELETE FROM ${table} WHERE "tenantId" = ${tenantId} AND "tag" = ${tag}`,
  );
}
