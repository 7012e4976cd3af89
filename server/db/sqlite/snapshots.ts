import { rmSync } from "node:fs";
import { type FileHandle, open, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseError } from "../DatabaseError.ts";
import type { PrismaClient } from "../generated/sqlite/client.ts";
import { adapterErrorOf, outageOf } from "../outage.ts";
import { Mutex } from "./Mutex.ts";

/** The database as it was at one moment, as a SQLite file that has no name. */
export interface Snapshot {
  /** The caller must close it, which frees its space on the disk. */
  readonly file: FileHandle;
  /** In bytes. */
  readonly size: number;
  /** {@link Snapshots.changes} before the snapshot, which has none of the changes counted later. */
  readonly changes: number;
}

/** Snapshots of a database in use. */
export interface Snapshots {
  /** @throws DatabaseError the disk has no room for the snapshot; the message names the folder and the size */
  take(): Promise<Snapshot>;
  /** Number of rows written since the database was opened. */
  changes(): Promise<number>;
}

/**
 * Makes the snapshots of an open SQLite database. Other statements wait while one is made, at about the speed of the
 * disk.
 * @param file the database's path; a snapshot takes as much space beside it
 */
export function snapshotsOf(client: PrismaClient, file: string): Snapshots {
  const copy = `${file}.snapshot`;
  const mutex = new Mutex();
  const changes = async () => {
    const rows = await client.$queryRaw<{ changes: bigint }[]>`SELECT total_changes() AS "changes"`;
    return Number(rows[0]?.changes);
  };
  const take = async (): Promise<Snapshot> => {
    // Before the snapshot: a row written in between counts as missing although the copy has it, which is harmless.
    const before = await changes();
    try {
      // By the client, so that it waits for open transactions: reading the file would free its locks.
      await client.$executeRaw`VACUUM INTO ${copy}`.catch(async (error: unknown) => {
        throw outageOf(error) === "unwritable" ? await withoutRoom(client, copy, error) : error;
      });
      const handle = await open(copy, "r");
      return { file: handle, size: (await handle.stat()).size, changes: before };
    } finally {
      // The open file stays readable without its name, and vanishes however this process ends.
      rmSync(copy, { force: true });
    }
  };
  return {
    changes,
    async take() {
      const release = await mutex.acquire();
      try {
        // A killed process may have left its copy.
        rmSync(copy, { force: true });
        return await take();
      } finally {
        release();
      }
    },
  };
}

/** The error for a snapshot that found no room on the disk. */
async function withoutRoom(client: PrismaClient, copy: string, error: unknown): Promise<DatabaseError> {
  const folder = dirname(copy);
  const [row] = await client.$queryRaw<
    { size: bigint }[]
  >`SELECT (page_count - freelist_count) * page_size AS "size"
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size`;
  const { bavail, bsize } = await statfs(folder);
  return new DatabaseError(
    `Cannot copy the database in the folder ${folder}: the copy needs ${row?.size} bytes there, and ` +
      `${bavail * bsize} are free (${adapterErrorOf(error)?.code})`,
    { cause: error },
  );
}
