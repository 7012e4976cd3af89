import type Sqlite from "better-sqlite3";
import { Client } from "pg";
import { DatabaseError } from "../DatabaseError.ts";
import {
  type AppliedMigration,
  migrationsFolder,
  pendingMigrations,
  readMigrations,
} from "../migrations/migrations.ts";
import { rowsOf, type SqliteTable, sqliteTables } from "../sqlite/tables.ts";
import { migratePostgresql } from "./migrate.ts";
import { SILENCE_TIMEOUT, shownUrl, unusable } from "./openDatabase.ts";

/** Number of rows in each INSERT statement. */
const BATCH = 1000;

/** Tables that are not copied, because triggers fill them when rows are inserted into the other tables. */
const DERIVED: ReadonlySet<string> = new Set(["DeviceCount", "RecordingSize"]);

/** A table that was copied completely, and the number of its rows. */
export interface CopiedTable {
  readonly name: string;
  readonly rows: number;
}

/**
 * Called after each batch of a table. `done` is the number of rows copied so far, and `total` is the number of rows in
 * the table.
 */
export type Progress = (table: string, done: number, total: number) => void;

/**
 * Copies all data of the service from a SQLite database into an empty PostgreSQL database. Creates or migrates the
 * schema first. If the copy fails, the PostgreSQL database contains no rows.
 * @param sqlite must not be written to during the copy
 * @throws DatabaseError a different version of the service wrote the SQLite database, or the PostgreSQL database cannot
 *   be used, is not empty or rejects a row
 */
export async function copyToPostgresql(
  sqlite: Sqlite.Database,
  url: string,
  progress: Progress,
): Promise<CopiedTable[]> {
  checkVersion(sqlite);
  const config = { connectionString: url, connectionTimeoutMillis: SILENCE_TIMEOUT };
  const client = new Client({ ...config, application_name: "gatehouse" });
  // If the connection breaks, the running statement also fails and reports the error.
  client.on("error", () => {});
  try {
    await migratePostgresql(config, readMigrations(migrationsFolder("postgresql")));
    await client.connect();
    await client.query("BEGIN");
    const tables = sqliteTables(sqlite);
    await checkTarget(client, url, tables);
    const copied: CopiedTable[] = [];
    for (const table of tables) {
      if (!DERIVED.has(table.name)) copied.push(await copyTable(sqlite, client, table, progress));
    }
    await client.query("COMMIT");
    return copied;
  } catch (error) {
    throw unusable(url, error);
  } finally {
    // PostgreSQL rolls back an open transaction when the connection ends.
    await client.end();
  }
}

function checkVersion(sqlite: Sqlite.Database): void {
  const applied = sqlite.prepare('SELECT name, checksum FROM "_migration" ORDER BY name').all();
  const migrations = readMigrations(migrationsFolder("sqlite"));
  const pending = pendingMigrations(`The database ${sqlite.name}`, applied as AppliedMigration[], migrations);
  if (pending.length === 0) return;
  throw new DatabaseError(
    `The database ${sqlite.name} was written by an older version of the service. Start this version on it once to ` +
      "migrate it",
  );
}

/** Locks the tables against all other sessions, and checks that they are empty. */
async function checkTarget(client: Client, url: string, tables: readonly SqliteTable[]): Promise<void> {
  const names = tables.map(({ name }) => `"${name}"`).join(", ");
  await client.query(`LOCK TABLE ${names} IN ACCESS EXCLUSIVE MODE`);
  for (const { name } of tables) {
    const { rowCount } = await client.query(`SELECT 1 FROM "${name}" LIMIT 1`);
    if (rowCount === 0) continue;
    throw new DatabaseError(
      `The database ${shownUrl(url)} is not empty: the table ${name} has rows. Specify a new database`,
    );
  }
}

async function copyTable(
  sqlite: Sqlite.Database,
  client: Client,
  table: SqliteTable,
  progress: Progress,
): Promise<CopiedTable> {
  const { name, sequence } = table;
  const total = sqlite.prepare(`SELECT count(*) FROM "${name}"`).pluck().get() as number;
  const columns = table.columns.map((column) => `"${column.name}"`).join(", ");
  const insert = `INSERT INTO "${name}" (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::"${name}", $1)`;
  let done = 0;
  for (const batch of rowsOf(sqlite, table, BATCH)) {
    await client.query(insert, [JSON.stringify(batch)]);
    done += batch.length;
    progress(name, done, total);
  }
  if (sequence) {
    // The sequence continues after the last assigned id, so that the ids of deleted rows are not reused.
    const { column, last } = sequence;
    await client.query("SELECT setval(pg_get_serial_sequence($1, $2), $3)", [`"${name}"`, column, last]);
  }
  const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM "${name}"`);
  const arrived = Number(rows[0]?.count);
  if (arrived !== total) throw new Error(`the target received ${arrived} of ${total} rows of ${name}`);
  return { name, rows: total };
}
