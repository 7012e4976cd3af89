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

/** Opens the SQLite database: see `openDatabase`. */
export async function openSqliteDatabase(file: string): Promise<Database> {
  const sqlite = openSqlite(file);
  try {
    const migrated = migrateSqlite(sqlite, readMigrations(migrationsFolder("sqlite")));
    indexNamesOnSqlite(sqlite);
    const factory = sqliteAdapter(sqlite);
    const adapter = await factory.connect();
    const client = new PrismaClient({
      adapter: { ...factory, connect: async () => adapter },
      // In Prisma's longer error formats, the message contains the arguments of the failed call, including secrets.
      errorFormat: "minimal",
    });
    readDirectly(client, readingBy(adapter));
    writeDirectly(client, new GroupCommit(() => beginOnSqlite(adapter), { oneLane: true }));
    return {
      client,
      migrated,
      schema: undefined,
      namesUnindexed: undefined,
      snapshots: snapshotsOf(client, file),
      async tryWrite() {
        // This statement writes a page of the file but changes no row. If it changed a row, the service would report
        // this row as missing from a snapshot that is taken at the same time. The service does not use `user_version`
        // for anything else.
        await client.$executeRaw`PRAGMA user_version = 0`;
        await checkFreeSpace(`${file}.room`);
      },
      async close() {
        await client.$disconnect();
        // Prisma does not close a connection that it has never used.
        sqlite.close();
      },
    };
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

/** Begins a transaction. SQLite runs one transaction at a time, so every transaction runs alone. */
export async function beginOnSqlite(adapter: SqlDriverAdapter): Promise<SharedTransaction> {
  const transaction = await adapter.startTransaction();
  const sent = new Unsettled();
  return {
    sql: directClient(transaction),
    // SQLite runs each statement when it is sent, before the statements of the next job.
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

/**
 * Free disk space that the write check requires, in bytes. Most requests write less, although SQLite writes each change
 * twice: to the write-ahead log and to the database file.
 */
const FREE_SPACE = 256 * 1024;

/**
 * Checks that the disk has enough free space by writing a temporary file. On a nearly full disk, a small write can
 * succeed although larger writes fail, so the file is large enough for most requests. File systems report missing space
 * immediately at the write. Therefore, the content of the file is not flushed to disk before the file is removed.
 */
async function checkFreeSpace(file: string): Promise<void> {
  try {
    await writeFile(file, Buffer.alloc(FREE_SPACE), { mode: 0o600 });
  } finally {
    await rm(file, { force: true });
  }
}
