import { rm, writeFile } from "node:fs/promises";
import type { Database } from "./Database.ts";
import { PrismaClient } from "./generated/sqlite/client.ts";
import { migrateSqlite } from "./migrateSqlite.ts";
import { migrationsFolder, readMigrations } from "./migrations.ts";
import { openSqlite } from "./openSqlite.ts";
import { readDirectly } from "./readRows.ts";
import { snapshotsOf } from "./snapshotSqlite.ts";
import { sqliteAdapter } from "./sqliteAdapter.ts";

/** See {@link openDatabase}. */
export async function openSqliteDatabase(file: string): Promise<Database> {
  const sqlite = openSqlite(file);
  try {
    const migrated = migrateSqlite(sqlite, readMigrations(migrationsFolder("sqlite")));
    // Minimal: the longer formats quote the arguments of a failed call, and with them secrets, in the message.
    const factory = sqliteAdapter(sqlite);
    const adapter = await factory.connect();
    const client = new PrismaClient({
      adapter: { ...factory, connect: async () => adapter },
      errorFormat: "minimal",
    });
    readDirectly(client, adapter);
    return {
      client,
      migrated,
      snapshots: snapshotsOf(client, file),
      async tryWrite() {
        // A page of the file, and no row, which would count as one that a snapshot lacks. Nothing uses the number.
        await client.$executeRaw`PRAGMA user_version = 0`;
        await findRoom(`${file}.room`);
      },
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

/** Bytes that must be free beside the database: what most requests write, in the log and once more in the database. */
const ROOM = 256 * 1024;

/**
 * Looks for room on the disk: what a write that failed has left of it often suffices for the next small one. Written,
 * and removed before it reaches the disk: file systems say at once whether they have room.
 */
async function findRoom(file: string): Promise<void> {
  try {
    await writeFile(file, Buffer.alloc(ROOM), { mode: 0o600 });
  } finally {
    await rm(file, { force: true });
  }
}
