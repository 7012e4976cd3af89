import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** One step from an older layout of the database to a newer one. */
export interface Migration {
  /** File name without its ending; steps are taken in its order. */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the SQL, to notice a step that was changed after it was taken. */
  readonly checksum: string;
}

/** The folder of the migrations for SQLite that come with the package. */
export const sqliteMigrations = fileURLToPath(new URL("../../db/migrations/sqlite", import.meta.url));

/** All migrations of a folder, in order. */
export function readMigrations(folder: string): Migration[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort()
    .map((file) => {
      const sql = readFileSync(join(folder, file), "utf8");
      return {
        name: file.slice(0, -".sql".length),
        sql,
        checksum: createHash("sha256").update(sql).digest("hex"),
      };
    });
}
