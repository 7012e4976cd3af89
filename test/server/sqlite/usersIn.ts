import Sqlite from "better-sqlite3";
import { expect } from "vitest";

/** Expects that a SQLite database is intact. Returns the usernames in it, in order. */
export function usersIn(file: string): unknown[] {
  const sqlite = new Sqlite(file, { readonly: true });
  try {
    expect(sqlite.pragma("integrity_check", { simple: true })).toBe("ok");
    return sqlite.prepare('SELECT "username" FROM "User" ORDER BY 1').pluck().all();
  } finally {
    sqlite.close();
  }
}
