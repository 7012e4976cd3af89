import { chmodSync, rmSync } from "node:fs";
import type Sqlite from "better-sqlite3";
import { moveDurably } from "../files/durableFile.ts";

/**
 * Writes the database as it is now into a file of its own, for its user alone. The file appears under its name
 * when it is whole and on the disk, or not at all; one that is there already is replaced then.
 */
export function copySqlite(sqlite: Sqlite.Database, target: string): void {
  const unfinished = `${target}.unfinished`;
  rmSync(unfinished, { force: true });
  // Reading the file from within this process would free its locks.
  sqlite.prepare("VACUUM INTO ?").run(unfinished);
  chmodSync(unfinished, 0o600);
  moveDurably(unfinished, target);
}
