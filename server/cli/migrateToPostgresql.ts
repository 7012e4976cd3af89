import { existsSync, rmSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { callAdmin, fetchDatabase } from "../admin/adminClient.ts";
import type { DatabaseChanges } from "../admin/requests.ts";
import { serviceListens } from "../admin/socketPath.ts";
import { type CopiedTable, copyToPostgresql, type Progress } from "../db/postgresql/copyFromSqlite.ts";
import { openSqlite } from "../db/sqlite/open.ts";
import { OperatorError } from "../OperatorError.ts";

/** Source and target of a move to PostgreSQL. */
interface MigrationRequest {
  readonly dataDir: string;
  /** Path of the SQLite database; it is read directly while no service runs. */
  readonly database: string;
  /** The PostgreSQL database, empty. */
  readonly target: string;
  readonly progress: Progress;
}

/** Result of a move to PostgreSQL. */
interface MigrationResult {
  readonly tables: readonly CopiedTable[];
  /** Rows that the service wrote during the copy, all missing from it; undefined: no service ran. */
  readonly missed: number | undefined;
}

/**
 * Copies the data of a service from SQLite to PostgreSQL. The database of a stopped service is copied itself, and
 * locked meanwhile; of a running service, a snapshot is copied.
 * @throws OperatorError when one of the databases cannot be used; the target then has no rows
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
  // In the data folder, because only the service's user may read its data.
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
