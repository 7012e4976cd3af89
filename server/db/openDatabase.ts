import { PrismaClient } from "./generated/sqlite/client.ts";
import { migrateSqlite } from "./migrateSqlite.ts";
import { readMigrations, sqliteMigrations } from "./migrations.ts";
import { openSqlite } from "./openSqlite.ts";
import { sqliteAdapter } from "./sqliteAdapter.ts";

export interface Database {
  readonly client: PrismaClient;
  /** Names of the migrations that opening it applied. */
  readonly migrated: readonly string[];
  /** Ends the use of the file. Statements that have begun end first; none can follow. */
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** Path of the SQLite file; made when there is none. */
  readonly file: string;
}

/**
 * Opens the service's database and brings its layout up to date. The file then belongs to this process alone.
 * A write that was acknowledged survives the end of the process and of the power.
 * @throws DatabaseError when it cannot be used; the message is for the person who runs the service
 */
export async function openDatabase({ file }: DatabaseOptions): Promise<Database> {
  const sqlite = openSqlite(file);
  try {
    const migrated = migrateSqlite(sqlite, readMigrations(sqliteMigrations));
    // Minimal: the longer formats quote the arguments of a failed call, and with them secrets, in the message.
    const client = new PrismaClient({ adapter: sqliteAdapter(sqlite), errorFormat: "minimal" });
    return {
      client,
      migrated,
      async close() {
        await client.$disconnect();
        // Prisma does not close what it has not used yet.
        sqlite.close();
      },
    };
  } catch (error) {
    sqlite.close();
    throw error;
  }
}
