import type { Database, DatabaseLocation } from "./Database.ts";
import { openPostgresqlDatabase } from "./postgresql/openDatabase.ts";
import { openSqliteDatabase } from "./sqlite/openDatabase.ts";

/**
 * Opens the service's database and migrates it. An acknowledged write survives a crash of the process and a loss of
 * power.
 * @throws DatabaseError when the database cannot be used; the message is for the operator, and holds no password
 */
export function openDatabase(location: DatabaseLocation): Promise<Database> {
  return "file" in location ? openSqliteDatabase(location.file) : openPostgresqlDatabase(location);
}
