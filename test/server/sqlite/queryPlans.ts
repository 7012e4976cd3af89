import type { SqlQuery } from "@prisma/driver-adapter-utils";
import { PrismaClient } from "../../../server/dist/db/generated/sqlite/client.js";
import { migrateSqlite } from "../../../server/dist/db/migrateSqlite.js";
import { migrationsFolder, readMigrations } from "../../../server/dist/db/migrations.js";
import { openSqlite } from "../../../server/dist/db/openSqlite.js";
import { sqliteAdapter } from "../../../server/dist/db/sqliteAdapter.js";
import { type RecordingDatabase, recording } from "../plans/recording.ts";

/** A new SQLite database whose plans can be read. */
export async function openRecordingSqlite(file: string): Promise<RecordingDatabase> {
  const sqlite = openSqlite(file);
  migrateSqlite(sqlite, readMigrations(migrationsFolder("sqlite")));
  let queries: SqlQuery[] = [];
  const { factory, run } = recording(sqliteAdapter(sqlite), (query) => queries.push(query));
  const client = new PrismaClient({ adapter: factory });
  const tables = new Set(
    sqlite.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[],
  );
  /** The table that a step goes through from end to end, be it along an index. */
  const scanned = (step: string): string[] => {
    const table = /^SCAN (?:main\.)?(\w+)/.exec(step)?.[1];
    return table !== undefined && tables.has(table) ? [table] : [];
  };
  return {
    client,
    takeQueries: () => {
      const taken = queries;
      queries = [];
      return taken;
    },
    planOf: async (query) => {
      const { rows } = await run({ ...query, sql: `EXPLAIN QUERY PLAN ${query.sql}` });
      const steps = rows.map((row) => String(row[3]));
      return {
        scans: steps.flatMap(scanned),
        sorts: steps.some((step) => /^USE TEMP B-TREE FOR .*ORDER BY$/.test(step)),
        text: `${query.sql}\n${steps.join("\n")}`,
      };
    },
    close: async () => {
      await client.$disconnect();
      sqlite.close();
    },
  };
}
