import { chmodSync, closeSync, openSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { reasonOf } from "../../OperatorError.ts";
import { DatabaseError } from "../DatabaseError.ts";

/** How long to wait for another process to release the file, in milliseconds. */
const busyTimeout = 1000;

/** Pragmas that the service relies on. Each is read back after it is set, since SQLite ignores what it cannot do. */
const pragmas: readonly [name: string, set: string, expected: string | number][] = [
  // Locks are taken once and kept until the file is closed: the file has one owner, and the operating system
  // frees it whatever way that process ends. Nothing else in this process may open the file and close it
  // again, since that would free the locks (POSIX).
  ["locking_mode", "EXCLUSIVE", "exclusive"],
  ["journal_mode", "WAL", "wal"],
  // FULL: a transaction is on the disk when it is acknowledged; WAL with NORMAL may lose the last ones.
  ["synchronous", "FULL", 2],
  ["foreign_keys", "ON", 1],
  ["busy_timeout", String(busyTimeout), busyTimeout],
];

/**
 * Opens a SQLite file for this process alone, readable by its user alone; creates a missing file.
 * @throws DatabaseError when another process has opened the file, or when it cannot be opened or is no database
 */
export function openSqlite(file: string): Sqlite.Database {
  let sqlite: Sqlite.Database | undefined;
  try {
    closeSync(openSync(file, "a", 0o600));
    chmodSync(file, 0o600);
    sqlite = new Sqlite(file, { timeout: busyTimeout });
    for (const [name, value, expected] of pragmas) {
      sqlite.pragma(`${name} = ${value}`);
      const got = sqlite.pragma(name, { simple: true });
      if (got !== expected)
        throw new DatabaseError(`SQLite does not take ${name}=${value} for ${file}: ${got}`);
    }
    sqlite.exec("BEGIN IMMEDIATE; COMMIT");
    return sqlite;
  } catch (error) {
    sqlite?.close();
    if (error instanceof DatabaseError) throw error;
    throw new DatabaseError(reason(file, error), { cause: error });
  }
}

function reason(file: string, error: unknown): string {
  const code = error instanceof Sqlite.SqliteError ? error.code : "";
  if (code.startsWith("SQLITE_BUSY"))
    return `The database ${file} is in use by another process: one service at a time may run on it`;
  if (code === "SQLITE_NOTADB") return `${file} is not a SQLite database`;
  return `Cannot open the database ${file}: ${reasonOf(error)}`;
}
