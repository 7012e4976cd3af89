import { chmodSync, closeSync, openSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { reasonOf } from "../../OperatorError.ts";
import { DatabaseError } from "../DatabaseError.ts";

/** Maximum time to wait until another process releases the file, in milliseconds. */
const busyTimeout = 1000;

/**
 * Pragmas that the service requires. After setting a pragma, the service reads its value, because SQLite ignores
 * unsupported values.
 */
const pragmas: readonly [name: string, set: string, expected: string | number][] = [
  // The process takes the locks once, and keeps them until it closes the file. Only one process can hold the locks. The
  // operating system releases the locks when the process ends, even after a crash. No other code in this process may
  // open and close the file, because the operating system would then release the locks (POSIX).
  ["locking_mode", "EXCLUSIVE", "exclusive"],
  ["journal_mode", "WAL", "wal"],
  // With FULL, a transaction is on disk before it is acknowledged. With NORMAL, WAL mode may lose the last
  // transactions.
  ["synchronous", "FULL", 2],
  ["foreign_keys", "ON", 1],
  ["busy_timeout", String(busyTimeout), busyTimeout],
];

/**
 * Opens a SQLite file for exclusive use by this process. Only the owner can read the file. Creates the file if it does
 * not exist.
 * @throws DatabaseError another process has opened the file, or the file cannot be opened or is not a database
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
        throw new DatabaseError(`SQLite does not support ${name}=${value} for ${file}: it returned ${got}`);
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
    return `The database ${file} is in use by another process. Stop that process: only one service may use a database`;
  if (code === "SQLITE_NOTADB") return `${file} is not a SQLite database`;
  return `Cannot open the database ${file}: ${reasonOf(error)}`;
}
