import { chmodSync, rmSync } from "node:fs";
import type Sqlite from "better-sqlite3";
import { moveDurably } from "../../files/durableFile.ts";
import { reasonOf } from "../../OperatorError.ts";
import { DatabaseError } from "../DatabaseError.ts";
import { type AppliedMigration, type Migration, pendingMigrations } from "../migrations/migrations.ts";

/**
 * Applies the pending migrations to the database, each in its own transaction. If the database contains data, first
 * copies it to `<file>.before-<first migration>`.
 *
 * Foreign keys are off during the migrations. A migration rebuilds a table: it creates a new table and drops the old
 * table. With foreign keys on, dropping the old table would silently delete the rows of other tables that refer to it.
 * The SQL of the migrations contains `PRAGMA foreign_keys=OFF`, but SQLite ignores this pragma inside a transaction.
 * Therefore, this function sets the pragma before the transactions.
 * @returns names of the applied migrations
 * @throws DatabaseError a newer version of the service wrote the database, or an applied migration has changed. Also
 *   thrown if a migration fails. The failed migration is rolled back.
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
        `${broken.length} rows would refer to missing rows, the first from ${first.table} to ${first.parent}`,
      );
    }
    sqlite
      .prepare('INSERT INTO "_migration" ("name", "checksum", "appliedAt") VALUES (?, ?, ?)')
      .run(name, checksum, new Date().toISOString());
  });
  try {
    take.immediate();
  } catch (error) {
    const reason = reasonOf(error);
    throw new DatabaseError(`The migration ${name} of ${sqlite.name} failed: ${reason}`, { cause: error });
  }
}

/**
 * Copies the database to a file that only the owner of the file can read. The file replaces an older copy only when the
 * new copy is complete and on disk. If the copy fails, no file is created.
 */
function copySqlite(sqlite: Sqlite.Database, target: string): void {
  const unfinished = `${target}.unfinished`;
  rmSync(unfinished, { force: true });
  // SQLite itself creates the copy. If this process opened and closed the database file, the operating system would
  // release SQLite's locks on the file (POSIX).
  sqlite.prepare("VACUUM INTO ?").run(unfinished);
  chmodSync(unfinished, 0o600);
  moveDurably(unfinished, target);
}
