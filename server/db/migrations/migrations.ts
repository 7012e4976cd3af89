import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageFile } from "../../files/packageFile.ts";
import { DatabaseError } from "../DatabaseError.ts";

/** A migration from an older schema of the database to a newer one. */
export interface Migration {
  /** File name without its extension. Migrations are applied in the order of their names. */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the SQL, to detect a migration that changed after it was applied. */
  readonly checksum: string;
}

/** Returns the folder of a database's migrations, which the package contains. */
export const migrationsFolder = (database: "sqlite" | "postgresql"): string =>
  packageFile(`db/migrations/${database}`);

/** Reads all migrations of a folder, in order. */
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

/** A migration that was applied to a database. */
export interface AppliedMigration {
  readonly name: string;
  readonly checksum: string;
}

/**
 * Returns the migrations that were not yet applied to a database.
 * @param database name of the database in messages
 * @throws DatabaseError a newer version of the service wrote the database, or an applied migration has changed
 */
export function pendingMigrations(
  database: string,
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
): readonly Migration[] {
  for (const [index, { name, checksum }] of applied.entries()) {
    const known = migrations[index];
    if (known?.name !== name) {
      throw new DatabaseError(
        `${database} was written by a newer version of the service: ` +
          `this version lacks the migration ${name}. Start the version that wrote the database, or a newer version.`,
      );
    }
    if (known.checksum !== checksum) {
      throw new DatabaseError(
        `The migration ${name} of this version differs from the migration that created ${lowerFirst(database)}. ` +
          "Start the version that wrote the database.",
      );
    }
  }
  return migrations.slice(applied.length);
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
