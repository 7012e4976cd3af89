import { chmodSync, rmSync } from "node:fs";
import type Sqlite from "better-sqlite3";
import { moveDurably } from "../files/durableFile.ts";
import { DatabaseError } from "./DatabaseError.ts";
import { type AppliedMigration, type Migration, pendingMigrations } from "./migrations.ts";

/**
 * Takes the steps that the database has not taken yet, each one whole or not at all, after writing a copy of a
 * database that holds data to `<file>.before-<first step>`.
 *
 * Foreign keys are off meanwhile: a table is rebuilt by dropping it, and with them on the rows that refer to it
 * would go with it, without an error. Inside of a transaction SQLite ignores the switch, so the migrations'
 * own `PRAGMA foreign_keys=OFF` does nothing there, and it is thrown here, before the transaction.
 * @returns names of the steps taken
 * @throws DatabaseError when the database comes from a newer version, when a step already taken has changed,
 * or when a step fails; the database is then as it was before that step
 */
export function migrateSqlite(sqlite: Sqlite.Database, migrations: readonly Migration[]): string[] {
  sqlite.exec(
    'CREATE TABLE IF NOT EXISTS "_migration" ("name" TEXT PRIMARY KEY, "checksum" TEXT NOT NULL, "appliedAt" TEXT NOT NULL)',
  );
  const applied = sqlite
    .prepare('SELECT name, checksum FROM "_migration" ORDER BY name')
    .all() as AppliedMigration[];
  const pending = pendingMigrations(`The database ${sqlite.name}`, applied, migrations);
  const [first] = pending;
  if (first === undefined) return [];
  if (applied.length > 0) copySqlite(sqlite, `${sqlite.name}.before-${first.name}`);
  sqlite.pragma("foreign_keys = OFF");
  try {
    for (const migration of pending) apply(sqlite, migration);
  } finally {
    sqlite.pragma("foreign_keys = ON");
  }
  return pending.map((migration) => migration.name);
}

function apply(sqlite: Sqlite.Database, { name, sql, checksum }: Migration): void {
  const take = sqlite.transaction(() => {
    sqlite.exec(sql);
    const broken = sqlite.pragma("foreign_key_check") as { table: string; parent: string }[];
    const [first] = broken;
    if (first) {
      throw new Error(
        `${broken.length} rows would refer to nothing, the first in ${first.table} to ${first.parent}`,
      );
    }
    sqlite
      .prepare('INSERT INTO "_migration" ("name", "checksum", "appliedAt") VALUES (?, ?, ?)')
      .run(name, checksum, new Date().toISOString());
  });
  try {
    take.immediate();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DatabaseError(`The migration ${name} of ${sqlite.name} failed: ${reason}`, { cause: error });
  }
}

/**
 * Writes the database as it is now into a file of its own, for its user alone. The file appears under its name
 * when it is whole and on the disk, or not at all; one that is there already is replaced then.
 */
function copySqlite(sqlite: Sqlite.Database, target: string): void {
  const unfinished = `${target}.unfinished`;
  rmSync(unfinished, { force: true });
  // Reading the file from within this process would free its locks.
  sqlite.prepare("VACUUM INTO ?").run(unfinished);
  chmodSync(unfinished, 0o600);
  moveDurably(unfinished, target);
}
