import { randomUUID } from "node:crypto";
import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import { insertRows } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, type Sql, type SqlClient, sql } from "../../db/sql/sql.ts";

/** A tag as a declared object. Its only declared field is the name. */
export const tagObject: ManagedObject<Declared> = {
  missing: "tag: the namespace has no such tag",
  id: (_, { params, body, done }) => String((done && body.tag) || params.tag),
  find: async (tx, tenantId, tag) => ((await knownTags(tx, tenantId, [tag])).length > 0 ? { tag } : null),
  declared: (row) => row,
};

/**
 * The tables that store where tags are used: on devices, and in the filters of keys and rules. The column `owner`
 * identifies the object that has the tag. Its values are unique among the uses of one tag.
 */
export const TAG_USES = [
  { table: sql.column("DeviceTagUse"), owner: sql.column("deviceUid") },
  { table: sql.column("PublicKeyTagUse"), owner: sql.column("fingerprint") },
  { table: sql.column("FirewallRuleTagUse"), owner: sql.column("ruleId") },
] as const;

/**
 * SQL condition that selects the rows of tags that at least one object uses. With EXISTS, PostgreSQL would read all
 * uses of all namespaces. With LIMIT, it looks up one use of each tag in an index.
 */
export const isTagUsed: Sql = sql.join(
  TAG_USES.map(
    ({ table }) => sql`(SELECT 1 FROM ${table} WHERE ${table}."tagId" = "Tag"."id" LIMIT 1) IS NOT NULL`,
  ),
  " OR ",
);

/**
 * Returns the tags that the namespace uses, in alphabetical order (rules section 16.4).
 * @param among if set, returns only tags in this list
 */
export async function knownTags(
  tx: SqlClient,
  tenantId: string,
  among?: readonly string[],
): Promise<string[]> {
  if (among?.length === 0) return [];
  const named = among ? sql`"Tag"."name" IN (${sql.list(among)})` : sql.true;
  const rows = await readRows<{ name: string }>(
    tx,
    sql`SELECT "Tag"."name" FROM "Tag" WHERE "Tag"."tenantId" = ${tenantId} AND ${named} AND (${isTagUsed})`,
  );
  return rows.map((row) => row.name).sort();
}

/**
 * Returns SQL for the id of a tag in the namespace. The SQL is the value of a column `tagId`. The id is null if the
 * namespace has no row for the tag.
 */
export const tagId = (tenantId: string, tag: string): Sql =>
  sql`(SELECT "Tag"."id" FROM "Tag" WHERE "Tag"."tenantId" = ${tenantId} AND "Tag"."name" = ${tag})`;

/**
 * Inserts rows for the tags that do not exist in the namespace yet. The transaction waits for this statement before it
 * commits.
 */
export async function addTags(tx: SqlClient, tenantId: string, tags: readonly string[]): Promise<void> {
  const rows = tags.map((name) => ({ id: randomUUID(), tenantId, name }));
  await leaveToCommit(tx, insertRows(tx, "Tag", rows));
}

/**
 * Renames a tag on all devices and in all filters of the namespace, by changing one row. No object may use the new
 * name.
 */
export async function renameEverywhere(
  tx: SqlClient,
  tenantId: string,
  from: string,
  to: string,
): Promise<void> {
  // The row of an unused tag may still have the new name.
  await tx.$executeRaw(sql`DELETE FROM "Tag" WHERE "tenantId" = ${tenantId} AND "name" = ${to}`);
  await tx.$executeRaw(
    sql`UPDATE "Tag" SET "name" = ${to} WHERE "tenantId" = ${tenantId} AND "name" = ${from}`,
  );
}

/**
 * Removes a tag from all devices and filters of the namespace. Changes only one row: it clears the namespace of the
 * tag, so that requests no longer find the tag and its uses. `removeDeletedTags` removes their rows.
 */
export async function deleteEverywhere(tx: SqlClient, tenantId: string, tag: string): Promise<void> {
  await tx.$executeRaw(
    sql`UPDATE "Tag" SET "tenantId" = NULL WHERE "tenantId" = ${tenantId} AND "name" = ${tag}`,
  );
}
