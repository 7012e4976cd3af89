import { existsSync, linkSync, renameSync, rmSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { moveDurably } from "../../files/durableFile.ts";
import { reasonOf } from "../../OperatorError.ts";
import { DatabaseError } from "../DatabaseError.ts";
import { openSqlite } from "./open.ts";

/**
 * Suffixes of the files that SQLite keeps next to a database. These files would corrupt a different database at the
 * same path.
 */
const COMPANIONS = ["-wal", "-shm", "-journal"];

/**
 * Replaces an unused SQLite database with another file, and keeps the old database under a different name. After a
 * failure at any point, the path contains either the old database or the new database, intact.
 * @param file the database's path; the file may be missing
 * @param kept new path of the old database
 * @throws DatabaseError a process is using the database, or the files cannot be renamed
 */
export function replaceSqlite(file: string, replacement: string, kept: string): void {
  const existed = existsSync(file);
  const owned = lock(file);
  try {
    if (existed) linkSync(file, kept);
    for (const suffix of COMPANIONS) {
      if (existsSync(file + suffix)) renameSync(file + suffix, kept + suffix);
    }
    moveDurably(replacement, file);
  } catch (error) {
    if (!existed) rmSync(file, { force: true });
    const reason = reasonOf(error);
    throw new DatabaseError(`Cannot replace the database ${file}: ${reason}`, { cause: error });
  } finally {
    // The old database stays open and locked until this point, so that no service can start with it and write to it.
    owned?.close();
  }
}

/**
 * Locks a database, and removes the files that SQLite keeps next to it. Returns undefined if the database is damaged.
 * No service can use a damaged database, so it needs no lock.
 */
function lock(file: string): Sqlite.Database | undefined {
  let sqlite: Sqlite.Database | undefined;
  try {
    sqlite = openSqlite(file);
    sqlite.pragma("journal_mode = MEMORY");
    sqlite.exec("BEGIN IMMEDIATE; COMMIT");
    return sqlite;
  } catch (error) {
    sqlite?.close();
    if (!isDamage(error)) throw error;
    return undefined;
  }
}

function isDamage(error: unknown): boolean {
  const cause = error instanceof DatabaseError ? error.cause : error;
  if (!(cause instanceof Sqlite.SqliteError)) return false;
  return cause.code === "SQLITE_NOTADB" || cause.code.startsWith("SQLITE_CORRUPT");
}
