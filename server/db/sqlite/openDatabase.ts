import { rm, writeFile } from "node:fs/promises";
import type { SqlDriverAdapter } from "@prisma/driver-adapter-utils";
import type { Database } from "../Database.ts";
import { PrismaClient } from "../generated/sqlite/client.ts";
import { migrationsFolder, readMigrations } from "../migrations/migrations.ts";
import { GroupCommit, type SharedTransaction, Unsettled } from "../sql/groupCommit.ts";
import { indexNamesOnSqlite } from "../sql/nameIndex.ts";
import { directClient, readDirectly, readingBy } from "../sql/sql.ts";
import { writeDirectly } from "../sql/transaction.ts";
import { sqliteAdapter } from "./adapter.ts";
import { migrateSqlite } from "./migrate.ts";
import { openSqlite } from "./open.ts";
import { snapshotsOf } from "./snapshots.ts";

/** See `openDatabase`. */
export async function openSqliteDatabase(file: string): Promise<Database> {
  const sqlite = openSqlite(file);
  try {
    const migrated = migrateSqlite(sqlite, readMigrations(migrationsFolder("sqlite")));
    indexNamesOnSqlite(sqlite);
    const factory = sqliteAdapter(sqlite);
    const adapter = await factory.connect();
    const client = new PrismaClient({
      adapter: { ...factory, connect: async () => adapter },
      // The longer formats quote the arguments of a failed call, and with them secrets, in the message.
      errorFormat: "minimal",
    });
    readDirectly(client, readingBy(adapter));
    writeDirectly(client, new GroupCommit(() => beginOnSqlite(adapter), { oneLane: true }));
    return {
      client,
      migrated,
      namesUnindexed: undefined,
      snapshots: snapshotsOf(client, file),
      async tryWrite() {
        // Writes a page of the file but no row, which would count as missing from a snapshot. Nothing uses the number.
        await client.$executeRaw`PRAGMA user_version = 0`;
        await findRoom(`${file}.room`);
      },
      async close() {
        await client.$disconnect();
        // Prisma does not close a connection that it has not used yet.
        sqlite.close();
      },
    };
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

/** Begins a transaction; no other one runs beside it anyway. */
export async function beginOnSqlite(adapter: SqlDriverAdapter): Promise<SharedTransaction> {
  const transaction = await adapter.startTransaction();
  const sent = new Unsettled();
  return {
    sql: directClient(transaction),
    // Each statement runs when it is sent, before the next job's.
    send(script) {
      for (const sql of script.split("; ")) sent.add(transaction.executeRaw({ sql, args: [], argTypes: [] }));
    },
    settle: () => sent.settle(),
    commit: () => transaction.commit(),
    async rollback(cause) {
      await transaction.rollback();
      throw cause;
    },
  };
}

/** Bytes that must be free on the disk: most requests write less, to the log and once more to the database. */
const ROOM = 256 * 1024;

/**
 * Checks that the disk has room, since after a failed write the rest often suffices for a small one. The file is
 * removed before it reaches the disk: file systems report missing room at once.
 */
async function findRoom(file: string): Promise<void> {
  try {
    await writeFile(file, Buffer.alloc(ROOM), { mode: 0o600 });
  } finally {
    await rm(file, { force: true });
  }
}
