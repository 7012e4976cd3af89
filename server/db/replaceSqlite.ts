import { existsSync, linkSync, renameSync, rmSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { moveDurably } from "../files/durableFile.ts";
import { DatabaseError } from "./DatabaseError.ts";
import { openSqlite } from "./openSqlite.ts";

/** Files that SQLite keeps beside a database; with another database they would destroy it. */
const COMPANIONS = ["-wal", "-shm", "-journal"];

/**
 * Puts another file in the place of a SQLite database that nobody uses, and keeps the one before under another name.
 * However this ends, one of the two is there, whole.
 * @param file the database's path; there may be none
 * @param kept name for the one before
 * @throws DatabaseError when a process uses the database, or when the files cannot be renamed
 */
export function replaceSqlite(file: string, replacement: string, kept: string): void {
  const existed = existsSync(file);
  const owned = takeOver(file);
  try {
    if (existed) linkSync(file, kept);
    for (const suffix of COMPANIONS) {
      if (existsSync(file + suffix)) renameSync(file + suffix, kept + suffix);
    }
    moveDurably(replacement, file);
  } catch (error) {
    if (!existed) rmSync(file, { force: true });
    const reason = error instanceof Error ? error.message : String(error);
    throw new DatabaseError(`Cannot replace the database ${file}: ${reason}`, { cause: error });
  } finally {
    // Not before: until then no service can start on the one before, and go on writing to it unnoticed.
    owned?.close();
  }
}

/** Locks a database, without companions; undefined when it is damaged, and so of no use to anybody else. */
function takeOver(file: string): Sqlite.Database | undefined {
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
