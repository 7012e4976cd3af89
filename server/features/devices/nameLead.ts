import { providerOf, sql } from "../../db/sql/sql.ts";
import { containsSql } from "../../lists/conditionSql.ts";
import type { Lead } from "../../lists/table.ts";
import type { Services } from "../../services.ts";

/** Maximum number of trigrams to look up. Each additional trigram costs the same and selects less. */
const MOST = 12;

/** Returns a lead to the devices whose names may contain a part, or undefined if no index can look up the part. */
export function nameLead({ db }: Pick<Services, "db">, tenantId: string, part: string): Lead | undefined {
  switch (providerOf(db)) {
    case "sqlite":
      return leadOnSqlite(part);
    case "postgres":
      return leadOnPostgresql(tenantId, part);
    default:
      return undefined;
  }
}

/**
 * Returns a lead from the table that `nameIndex.ts` creates. The lead covers the names of all namespaces. It finds
 * names that contain all trigrams, in any order.
 */
function leadOnSqlite(part: string): Lead | undefined {
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
 * Returns a lead that PostgreSQL can answer from the index that `nameIndex.ts` creates, if the index exists and the
 * planner selects it. A pattern without three adjacent letters or digits would read the whole index, with the names
 * of all namespaces.
 */
function leadOnPostgresql(tenantId: string, part: string): Lead | undefined {
  if (!/[a-z0-9]{3}/i.test(part)) return undefined;
  return {
    candidates: sql`SELECT "Device"."uid" AS candidate FROM "Device"
      WHERE "Device"."tenantId" = ${tenantId} AND ${containsSql(sql`"Device"."name"`, part)}`,
    column: sql`"Device"."uid"`,
  };
}
