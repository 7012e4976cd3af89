import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { migrationsFolder, readMigrations } from "../../server/db/migrations/migrations.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** The files of the server package: see `files` in its package.json. */
const PACKAGE = ["bin", "dist", "db/migrations", "features/install", "pages", "package.json"];

/** A migration that only newer versions of the service have. */
export interface NewerMigration {
  readonly name: string;
  /** The oldest schema that may run beside the migration. */
  readonly oldestBeside: string;
  readonly sql: string;
}

/** The schema of the present version. */
export const PRESENT_SCHEMA = readMigrations(migrationsFolder("postgresql")).at(-1)?.name ?? "";

/**
 * Copies the built server package, and adds migrations to the copy, as a newer version of the service.
 * @param folder a new folder for the copy
 * @returns the path of the command `gatehouse-server`
 */
export function newerServer(folder: string, migrations: readonly NewerMigration[]): string {
  mkdirSync(folder);
  for (const path of PACKAGE) cpSync(join(ROOT, "server", path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  for (const { name, oldestBeside, sql } of migrations) {
    writeFileSync(
      join(folder, "db", "migrations", "postgresql", `${name}.sql`),
      `-- oldest-beside: ${oldestBeside}\n${sql}\n`,
    );
  }
  return join(folder, "bin", "gatehouse-server.js");
}
