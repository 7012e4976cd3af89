import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { type Database, openDatabase } from "../../server/dist/db/openDatabase.js";
import { toSqlite } from "../../server/dist/db/sqliteValues.js";

/** A row, by the names of its columns; columns left out have their default. */
export type Row = Readonly<Record<string, string | number | boolean | Date | null>>;

/** What differs between the databases. */
interface BenchDatabase {
  /**
   * The value of GATEHOUSE_DATABASE_URL for a run in the folder.
   * @param given that of --database-url, for a database that is a server of its own
   */
  url(folder: string, given: string | undefined): string;
  /** Writes rows of the same columns into a table that nobody else uses meanwhile: 100,000 of them in seconds. */
  insert(url: string, table: string, rows: readonly Row[]): Promise<void>;
}

const sqlite: BenchDatabase = {
  url: (folder) => `file:${join(folder, "gatehouse.db")}`,
  async insert(url, table, rows) {
    if (rows.length === 0) return;
    const columns = Object.keys(rows[0] ?? {});
    const names = columns.map((name) => `"${name}"`).join(", ");
    const connection = new Sqlite(fileOf(url));
    try {
      const statement = connection.prepare(
        `INSERT INTO "${table}" (${names}) VALUES (${columns.map(() => "?").join(", ")})`,
      );
      connection.transaction(() => {
        for (const row of rows) statement.run(columns.map((name) => toSqlite(row[name], undefined)));
      })();
    } finally {
      connection.close();
    }
  },
};

/** The databases that can be measured. */
export const benchDatabases = { sqlite } as const;
export type DatabaseName = keyof typeof benchDatabases;

/** Opens the database that a URL names, with the service's own library and layout. */
export function openForBench(url: string): Promise<Database> {
  return openDatabase({ file: fileOf(url) });
}

const fileOf = (url: string): string => url.slice("file:".length);
