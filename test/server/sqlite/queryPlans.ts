import type { SqlQuery } from "@prisma/driver-adapter-utils";
import type { DatabaseLocation } from "../../../server/db/Database.ts";
import { PrismaClient } from "../../../server/db/generated/sqlite/client.ts";
import { migrationsFolder, readMigrations } from "../../../server/db/migrations/migrations.ts";
import { indexNamesOnSqlite } from "../../../server/db/sql/nameIndex.ts";
import { readDirectly, readingBy } from "../../../server/db/sql/sql.ts";
import { sqliteAdapter } from "../../../server/db/sqlite/adapter.ts";
import { migrateSqlite } from "../../../server/db/sqlite/migrate.ts";
import { openSqlite } from "../../../server/db/sqlite/open.ts";
import { type RecordingDatabase, recording } from "../plans/recording.ts";

/** Opens a new SQLite database that returns query plans. */
export async function openRecordingSqlite(location: DatabaseLocation): Promise<RecordingDatabase> {
  if (!("file" in location)) throw new Error("this test needs SQLite");
  const sqlite = openSqlite(location.file);
  migrateSqlite(sqlite, readMigrations(migrationsFolder("sqlite")));
  indexNamesOnSqlite(sqlite);
  let queries: SqlQuery[] = [];
  const { factory, run } = recording(sqliteAdapter(sqlite), (query) => queries.push(query));
  const adapter = await factory.connect();
  const client = new PrismaClient({ adapter: { ...factory, connect: async () => adapter } });
  readDirectly(client, readingBy(adapter));
  const tables = new Set(
    sqlite.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[],
  );
  /** Returns the table that a step reads completely, even if the step reads it through an index. */
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
      // If an inner query selects the rows of one page, the outermost query sorts only these few rows. This sort does
      // not count.
      const ofPage = steps.includes("CO-ROUTINE page");
      return {
        scans: steps.flatMap(scanned),
        sorts: rows.some(
          ([, parent, , step]) =>
            /^USE TEMP B-TREE FOR .*ORDER BY$/.test(String(step)) && !(ofPage && parent === 0),
        ),
        text: `${query.sql}\n${steps.join("\n")}`,
      };
    },
    close: async () => {
      await client.$disconnect();
      sqlite.close();
    },
  };
}
