import type { Database, DatabaseLocation } from "./Database.ts";
import { openPostgresqlDatabase } from "./openPostgresql.ts";
import { openSqliteDatabase } from "./openSqliteDatabase.ts";

/**
 * Opens the service's database and brings its layout up to date. A write that was acknowledged survives the end of
 * the process and of the power.
 * @throws DatabaseError when it cannot be used; the message is for the person who runs the service, and holds no
 * password
 */
export function openDatabase(location: DatabaseLocation): Promise<Database> {
  return "file" in location ? openSqliteDatabase(location.file) : openPostgresqlDatabase(location);
}
