import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageFile } from "../../files/packageFile.ts";
import { DatabaseError } from "../DatabaseError.ts";
import { checksumOf } from "./statements.ts";
import { TEXT_CHECKSUMS } from "./textChecksums.ts";

/** A migration of the database from an older schema to a newer schema. */
export interface Migration {
  /** File name without its extension. Migrations are applied in the order of their names. */
  readonly name: string;
  readonly sql: string;
  /** Checksum of the statements. Detects a migration that was changed after it was applied. */
  readonly checksum: string;
  /**
   * The oldest schema whose instances may run after this migration. A schema is the name of a migration: an instance
   * has the schema of the newest migration that its version contains. Instances with an older schema must stop before
   * this migration is applied.
   */
  readonly oldestBeside: string;
}

/** Returns the folder in this package that contains the migrations of a database. */
export const migrationsFolder = (database: "sqlite" | "postgresql"): string =>
  packageFile(`db/migrations/${database}`);

/**
 * Reads all migrations of a folder, in order.
 * @throws DatabaseError the SQL or the directive of a migration cannot be read
 */
export function readMigrations(folder: string): Migration[] {
  const names = readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .map((file) => file.slice(0, -".sql".length))
    .sort();
  return names.map((name, index) => {
    const migration = migrationOf(name, readFileSync(join(folder, `${name}.sql`), "utf8"));
    const { oldestBeside } = migration;
    if (names.slice(0, index + 1).includes(oldestBeside)) return migration;
    throw invalid(name, `oldest-beside is ${oldestBeside}, which is neither this migration nor an older one`);
  });
}

/** The format of the first line of a migration: see {@link Migration.oldestBeside}. */
const DIRECTIVE = /^-- oldest-beside: (\w+)$/;

/**
 * Creates a migration from its name and its SQL.
 * @throws DatabaseError the SQL or its directive cannot be read
 */
export function migrationOf(name: string, sql: string): Migration {
  const [first = ""] = sql.split(/\r?\n/, 1);
  const [, oldestBeside] = DIRECTIVE.exec(first) ?? [];
  if (oldestBeside === undefined) {
    throw invalid(name, "its first line must be `-- oldest-beside: <migration>`");
  }
  try {
    return { name, sql, checksum: checksumOf(sql), oldestBeside };
  } catch (error) {
    throw error instanceof DatabaseError ? invalid(name, error.message) : error;
  }
}

const invalid = (name: string, problem: string): DatabaseError =>
  new DatabaseError(`The migration ${name} is invalid: ${problem}`);

/**
 * Returns the oldest schema whose instances may run after all of these migrations. Returns an empty string if there are
 * no migrations.
 */
export const oldestBesideAll = (migrations: readonly Pick<Migration, "oldestBeside">[]): string =>
  migrations
    .map(({ oldestBeside }) => oldestBeside)
    .sort()
    .at(-1) ?? "";

/** A migration that was applied to a database. */
export interface AppliedMigration {
  readonly name: string;
  readonly checksum: string;
}

/**
 * Returns the migrations that have not yet been applied to a database.
 * @param database name of the database in messages
 * @throws DatabaseError a newer version of the service wrote the database, or the database has a different history:
 *   this version does not contain an applied migration, or the statements of an applied migration differ
 */
export function pendingMigrations(
  database: string,
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
): readonly Migration[] {
  for (const [index, { name, checksum }] of applied.entries()) {
    const known = migrations[index];
    if (known === undefined) {
      throw new DatabaseError(
        `${database} was written by a newer version of the service: ` +
          `this version lacks the migration ${name}. Start the version that wrote the database, or a newer version.`,
      );
    }
    if (known.name !== name)
      throw otherHistory(`${database} has the migration ${name}, which this version lacks.`);
    if (known.checksum !== checksum && !TEXT_CHECKSUMS[name]?.includes(checksum)) {
      const created = `the migration that created ${lowerFirst(database)}`;
      throw otherHistory(`The migration ${name} of this version differs from ${created}.`);
    }
  }
  return migrations.slice(applied.length);
}

/** Returns the error for a database whose applied migrations differ from the migrations of this version. */
const otherHistory = (difference: string): DatabaseError =>
  new DatabaseError(
    `${difference} A version before the first release wrote the database, and no later version can migrate it. ` +
      "Start the version that wrote the database, and move the policy to a new service with `gatehouse import`. " +
      "Devices enroll again. The steps are in docs/operate/upgrade.md.",
  );

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
