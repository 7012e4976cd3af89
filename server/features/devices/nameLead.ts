import { providerOf, sql } from "../../db/sql/sql.ts";
import { containsSql } from "../../lists/conditionSql.ts";
import type { Lead } from "../../lists/table.ts";
import type { Services } from "../../services.ts";

/** Most trigrams of a part that are looked up; each further one costs as much, and says less. */
const MOST = 12;

/** The devices whose names may contain a part; undefined for one that no index can look up. */
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

/** By the table that `nameIndex.ts` makes: the names of all namespaces that have all the trigrams, in any order. */
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
 * By the index that `nameIndex.ts` makes, if it may and the planner likes it. For a pattern without three letters or
 * digits side by side it would read the whole of it, of all namespaces.
 */
function leadOnPostgresql(tenantId: string, part: string): Lead | undefined {
  if (!/[a-z0-9]{3}/i.test(part)) return undefined;
  return {
    candidates: sql`SELECT "Device"."uid" AS candidate FROM "Device"
      WHERE "Device"."tenantId" = ${tenantId} AND ${containsSql(sql`"Device"."name"`, part)}`,
    column: sql`"Device"."uid"`,
  };
}
