import { existsSync, rmSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { callAdmin, fetchDatabase } from "../admin/adminClient.ts";
import type { DatabaseChanges } from "../admin/requests.ts";
import { serviceListens } from "../admin/socketPath.ts";
import { type CopiedTable, copyToPostgresql, type Progress } from "../db/postgresql/copyFromSqlite.ts";
import { openSqlite } from "../db/sqlite/open.ts";
import { OperatorError } from "../OperatorError.ts";

/** Source and target of a migration to PostgreSQL. */
interface MigrationRequest {
  readonly dataDir: string;
  /** Path of the SQLite database. The command reads this file directly if no service uses the data folder. */
  readonly database: string;
  /** URL of the empty PostgreSQL database. */
  readonly target: string;
  readonly progress: Progress;
}

/** Result of a migration to PostgreSQL. */
interface MigrationResult {
  readonly tables: readonly CopiedTable[];
  /**
   * Number of rows that the copy lacks, because the running service wrote them during the copy. Undefined if the
   * service was stopped.
   */
  readonly missed: number | undefined;
}

/**
 * Copies the data of a service from SQLite to PostgreSQL. If the service is stopped, its database is locked and copied.
 * If the service runs, a snapshot is copied.
 * @throws OperatorError one of the databases cannot be used; the target then has no rows
 */
export async function migrateToPostgresql(request: MigrationRequest): Promise<MigrationResult> {
  const { dataDir, database, target, progress } = request;
  if (await serviceListens(dataDir)) return migrateSnapshot(request);
  if (!existsSync(database))
    throw new OperatorError(
      `The database ${database} does not exist. Check --data-dir and GATEHOUSE_DATABASE_URL.`,
    );
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
  // The snapshot contains secrets, so the command writes it to the service's data folder and not to a shared temporary
  // folder.
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
