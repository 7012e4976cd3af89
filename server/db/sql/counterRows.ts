import { providerOf, type SqlClient, sql } from "./sql.ts";

/**
 * A table of counters per namespace, which triggers maintain. On PostgreSQL, each database connection has its own rows.
 */
interface CounterTable {
  readonly name: string;
  /** The columns of the primary key, except the last column `slot`. The first column is `tenantId`. */
  readonly key: readonly string[];
  readonly counter: string;
}

/**
 * Merges the counter rows of closed connections into one row per key, in slot 0. SQLite uses only this slot. Several
 * instances may run this function at the same time, and it may run while a namespace is being deleted. An instance
 * skips rows that another instance has locked, so that a deadlock cannot occur. A new connection can have the process
 * id of a closed connection. The new connection then uses the row of the closed connection, or a new row if that row
 * was merged.
 */
export async function foldCounterRows(db: SqlClient, { name, key, counter }: CounterTable): Promise<void> {
  if (providerOf(db) !== "postgres") return;
  const table = sql.column(name);
  const columns = sql.join(key.map(sql.column), ", ");
  const rowOf = (source: string) =>
    sql.join(
      [...key, "slot"].map((column) => sql`${sql.column(source)}.${sql.column(column)}`),
      ", ",
    );
  const count = sql.column(counter);
  await db.$executeRaw(sql`WITH "ended" AS MATERIALIZED (
      SELECT ${columns}, "slot" FROM ${table}
      WHERE "slot" > 0 AND "slot" NOT IN (SELECT pid FROM pg_stat_activity) FOR UPDATE SKIP LOCKED
    ), "kept" AS MATERIALIZED (
      SELECT "tenantId" FROM "Namespace" WHERE "tenantId" IN (SELECT "tenantId" FROM "ended") FOR KEY SHARE SKIP LOCKED
    ), "taken" AS (
      DELETE FROM ${table} AS "counted" USING "kept" JOIN "ended" USING ("tenantId")
      WHERE (${rowOf("counted")}) = (${rowOf("ended")})
      RETURNING "counted".*
    )
    INSERT INTO ${table} AS "folded" (${columns}, "slot", ${count})
    SELECT ${columns}, 0, SUM(${count}) FROM "taken" GROUP BY ${columns} ORDER BY ${columns}
    ON CONFLICT (${columns}, "slot") DO UPDATE SET ${count} = "folded".${count} + EXCLUDED.${count}`);
}
