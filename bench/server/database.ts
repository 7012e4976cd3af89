import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { Client } from "pg";
import type { Database } from "../../server/dist/db/Database.js";
import { openDatabase } from "../../server/dist/db/openDatabase.js";
import { toSqlite } from "../../server/dist/db/sqlite/values.js";
import { startPostgresql } from "../../test/support/postgresql/server.ts";

/** A row, by the names of its columns; columns left out have their default. */
export type Row = Readonly<Record<string, string | number | boolean | Date | null>>;

/** Databases for one run. */
export interface StartedDatabase {
  /** The value of GATEHOUSE_DATABASE_URL of the service. */
  readonly url: string;
  /** The same of the floor: it runs beside the service, and a SQLite file has one owner. */
  readonly floorUrl: string;
  stop(): Promise<void>;
}

/** What differs between the databases. */
interface BenchDatabase {
  /**
   * @param folder of the run
   * @param given that of --database-url, for a database that is a server of its own
   */
  start(folder: string, given: string | undefined): Promise<StartedDatabase>;
  /** Writes rows of the same columns into a table that nobody else uses meanwhile: 100,000 of them in seconds. */
  insert(url: string, table: string, rows: readonly Row[]): Promise<void>;
  /** To be called when all rows are there. */
  settle(url: string): Promise<void>;
}

const columnsOf = (rows: readonly Row[]): string[] => Object.keys(rows[0] ?? {});
const quoted = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(", ");

const sqlite: BenchDatabase = {
  async start(folder) {
    const fileUrl = (name: string) => `file:${join(folder, name)}`;
    return { url: fileUrl("gatehouse.db"), floorUrl: fileUrl("floor.db"), stop: async () => {} };
  },
  async insert(url, table, rows) {
    const columns = columnsOf(rows);
    const connection = new Sqlite(fileOf(url));
    try {
      const statement = connection.prepare(
        `INSERT INTO "${table}" (${quoted(columns)}) VALUES (${columns.map(() => "?").join(", ")})`,
      );
      connection.transaction(() => {
        for (const row of rows) statement.run(columns.map((name) => toSqlite(row[name], undefined)));
      })();
    } finally {
      connection.close();
    }
  },
  async settle() {},
};

/** Rows that one statement carries. */
const BATCH = 5000;

const postgresql: BenchDatabase = {
  async start(_folder, given) {
    // As PostgreSQL is set up by default: what it acknowledges is on the disk.
    const server = given === undefined ? await startPostgresql({ fsync: "on" }) : undefined;
    const url = given ?? server?.url ?? "";
    return { url, floorUrl: url, stop: async () => server?.stop() };
  },
  insert: (url, table, rows) =>
    withClient(url, async (client) => {
      const columns = quoted(columnsOf(rows));
      for (let first = 0; first < rows.length; first += BATCH) {
        await client.query(
          `INSERT INTO "${table}" (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::"${table}", $1)`,
          [JSON.stringify(rows.slice(first, first + BATCH))],
        );
      }
    }),
  // Otherwise the server does it by itself some time later, in the middle of what is measured.
  settle: (url) => withClient(url, async (client) => void (await client.query("VACUUM ANALYZE"))),
};

async function withClient(url: string, work: (client: Client) => Promise<void>): Promise<void> {
  const client = new Client(url);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

/** The databases that can be measured. */
export const benchDatabases = { sqlite, postgresql } as const;
export type DatabaseName = keyof typeof benchDatabases;

/** Connections of the floor, as many as the service has by default. */
const CONNECTIONS = 10;

/** Opens the database that a URL names, with the service's own library and layout. */
export function openForBench(url: string): Promise<Database> {
  return openDatabase(url.startsWith("file:") ? { file: fileOf(url) } : { url, connections: CONNECTIONS });
}

const fileOf = (url: string): string => url.slice("file:".length);
