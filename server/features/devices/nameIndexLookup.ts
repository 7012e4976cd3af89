import { providerOf, sql } from "../../db/sql/sql.ts";
import { containsSql } from "../../lists/conditionSql.ts";
import type { IndexLookup } from "../../lists/table.ts";
import type { Services } from "../../services.ts";

/**
 * Maximum number of trigrams that the query looks up. A trigram is a sequence of three characters in the search string.
 * Each additional trigram costs the same, but excludes fewer names.
 */
const MOST = 12;

/**
 * Returns an index lookup for a search by part of a device name. The lookup may also find devices whose names do not
 * contain the search string. Returns undefined if no index supports the search string.
 */
export function nameIndexLookup(
  { db }: Pick<Services, "db">,
  tenantId: string,
  part: string,
): IndexLookup | undefined {
  switch (providerOf(db)) {
    case "sqlite":
      return lookupOnSqlite(part);
    case "postgres":
      return lookupOnPostgresql(tenantId, part);
    default:
      return undefined;
  }
}

/**
 * Returns an index lookup in the table that `nameIndex.ts` creates. The lookup searches the names of all namespaces. It
 * finds the names that contain all trigrams of the search string, in any order.
 */
function lookupOnSqlite(part: string): IndexLookup | undefined {
  const characters = [...part];
  const trigrams = characters.slice(2).map((_, start) => characters.slice(start, start + 3).join(""));
  if (trigrams.length === 0) return undefined;
  const match = [...new Set(trigrams)].slice(0, MOST).map((trigram) => `"${trigram.replaceAll('"', '""')}"`);
  return {
    candidates: sql`SELECT rowid AS candidate FROM "DeviceName" WHERE "DeviceName" MATCH ${match.join(" AND ")}`,
    column: sql`"Device".rowid`,
  };
}

/**
 * Returns an index lookup. PostgreSQL can use the index that `nameIndex.ts` creates for this lookup. Returns undefined
 * if the search string does not contain three adjacent letters or digits. For such a string, PostgreSQL would read the
 * whole index, with the names of all namespaces.
 */
function lookupOnPostgresql(tenantId: string, part: string): IndexLookup | undefined {
  if (!/[a-z0-9]{3}/i.test(part)) return undefined;
  return {
    candidates: sql`SELECT "Device"."uid" AS candidate FROM "Device"
      WHERE "Device"."tenantId" = ${tenantId} AND ${containsSql("postgres", sql`"Device"."name"`, part)}`,
    column: sql`"Device"."uid"`,
  };
}
