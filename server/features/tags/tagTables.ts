import type { ManagedObject } from "../../changes/managedObject.ts";
import { type Sql, sql } from "../../db/sql.ts";
import type { Transaction } from "../../db/transaction.ts";

/** A tag's name, on whatever carries it. */
export const tagObject: ManagedObject = {
  id: (_, { params, body, done }) => String((done && body.tag) || params.tag),
  async read(tx, tenantId, tag) {
    return (await knownTags(tx, tenantId, [tag])).length > 0 ? { tag } : null;
  },
};

/** Everything that carries tags has them in one of these, in the columns `tenantId` and `tag`. */
const TABLES = ["DeviceTag", "PublicKeyTag", "FirewallRuleTag"].map(sql.column);

/**
 * The tags that anything in the namespace carries, in alphabetical order, or those of the given ones
 * (rules section 16.4).
 */
export async function knownTags(
  tx: Transaction,
  tenantId: string,
  among?: readonly string[],
): Promise<string[]> {
  const wanted = among ? sql`"tag" IN (${sql.list(among)})` : sql.true;
  const used = TABLES.map(
    (table) => sql`SELECT "tag" FROM ${table} WHERE "tenantId" = ${tenantId} AND ${wanted}`,
  );
  const rows = await tx.$queryRaw<{ tag: string }[]>(sql.join(used, " UNION "));
  return rows.map((row) => row.tag).sort();
}

async function everywhere(tx: Transaction, statement: (table: Sql) => Sql): Promise<void> {
  for (const table of TABLES) await tx.$executeRaw(statement(table));
}

export function renameEverywhere(tx: Transaction, tenantId: string, from: string, to: string): Promise<void> {
  return everywhere(
    tx,
    (table) => sql`UPDATE ${table} SET "tag" = ${to} WHERE "tenantId" = ${tenantId} AND "tag" = ${from}`,
  );
}

export function deleteEverywhere(tx: Transaction, tenantId: string, tag: string): Promise<void> {
  return everywhere(
    tx,
    (table) => sql`DELETE FROM ${table} WHERE "tenantId" = ${tenantId} AND "tag" = ${tag}`,
  );
}
