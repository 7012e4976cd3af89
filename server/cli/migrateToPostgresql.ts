import { existsSync, rmSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { callAdmin, fetchDatabase } from "../admin/adminClient.ts";
import type { DatabaseChanges } from "../admin/requests.ts";
import { serviceListens } from "../admin/socketPath.ts";
import { type CopiedTable, copyToPostgresql, type Progress } from "../db/copyToPostgresql.ts";
import { openSqlite } from "../db/openSqlite.ts";
import { OperatorError } from "../OperatorError.ts";

/** What shall be copied where. */
export interface MigrationRequest {
  readonly dataDir: string;
  /** Path of the SQLite database, which is read itself while no service runs. */
  readonly database: string;
  /** The PostgreSQL database, empty. */
  readonly target: string;
  readonly progress: Progress;
}

/** What was copied. */
export interface MigrationResult {
  readonly tables: readonly CopiedTable[];
  /** How many rows the service wrote meanwhile, none of which is in the copy; undefined: no service ran. */
  readonly missed: number | undefined;
}

/**
 * Copies the data of a service from SQLite to PostgreSQL: of one that is stopped its database, which nobody else can
 * use until the end, of one that runs a snapshot.
 * @throws OperatorError when one of the databases cannot be used; the target is then without rows
 */
export async function migrateToPostgresql(request: MigrationRequest): Promise<MigrationResult> {
  const { dataDir, database, target, progress } = request;
  if (await serviceListens(dataDir)) return migrateSnapshot(request);
  if (!existsSync(database)) throw new OperatorError(`There is no database ${database}`);
  const sqlite = openSqlite(database);
  try {
    return { tables: await copyToPostgresql(sqlite, target, progress), missed: undefined };
  } finally {
    sqlite.close();
  }
}

async function migrateSnapshot({
  dataDir,
  database,
  target,
  progress,
}: MigrationRequest): Promise<MigrationResult> {
  // In the data folder, since it holds what only the service's user may read.
  const snapshot = `${database}.migrating`;
  try {
    const before = await fetchDatabase(dataDir, snapshot);
    const sqlite = new Sqlite(snapshot, { readonly: true });
    try {
      const tables = await copyToPostgresql(sqlite, target, progress);
      const { changes } = await callAdmin<DatabaseChanges>(dataDir, "GET", "/database/changes");
      return { tables, missed: changes - before };
    } finally {
      sqlite.close();
    }
  } finally {
    rmSync(snapshot, { force: true });
  }
}
