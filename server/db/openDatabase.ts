import type { Database, DatabaseLocation, MigrationOptions } from "./Database.ts";
import { openPostgresqlDatabase } from "./postgresql/openDatabase.ts";
import { openSqliteDatabase } from "./sqlite/openDatabase.ts";

/**
 * Opens the service's database and migrates it. An acknowledged write survives a crash of the process and a power
 * failure.
 * @throws DatabaseError the database cannot be used; the error's message is for the operator and contains no password
 */
export function openDatabase(location: DatabaseLocation, options: MigrationOptions = {}): Promise<Database> {
  return "file" in location ? openSqliteDatabase(location.file) : openPostgresqlDatabase(location, options);
}
