import { rmSync } from "node:fs";
import { type FileHandle, open, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseError } from "../DatabaseError.ts";
import type { PrismaClient } from "../generated/sqlite/client.ts";
import { adapterErrorOf, outageOf } from "../outage.ts";
import { Mutex } from "./Mutex.ts";

/** A copy of the database at one point in time. The copy is an open SQLite file that was unlinked. */
interface Snapshot {
  /** The open file. The caller must close the file to free its disk space. */
  readonly file: FileHandle;
  /** Size of the file, in bytes. */
  readonly size: number;
  /** Value of {@link Snapshots.changes} before the snapshot was taken. The snapshot may lack later changes. */
  readonly changes: number;
}

/** Takes snapshots of a database in use. */
export interface Snapshots {
  /**
   * Takes a snapshot.
   * @throws DatabaseError the disk has too little free space for the snapshot; the message contains the folder and the
   *   required size
   */
  take(): Promise<Snapshot>;
  /** Returns the number of rows written since the database was opened. */
  changes(): Promise<number>;
}

/**
 * Returns the functions that take snapshots of an open SQLite database. Taking a snapshot takes about as long as
 * writing the database to disk, and delays other statements.
 * @param file the path of the database. A snapshot is written to the folder of this file, and needs as much free disk
 *   space as the database.
 */
export function snapshotsOf(client: PrismaClient, file: string): Snapshots {
  const copy = `${file}.snapshot`;
  const mutex = new Mutex();
  const changes = async () => {
    const rows = await client.$queryRaw<{ changes: bigint }[]>`SELECT total_changes() AS "changes"`;
    return Number(rows[0]?.changes);
  };
  const take = async (): Promise<Snapshot> => {
    // The counter is read before the snapshot. If a row is written between these two steps, it is treated as missing
    // although the snapshot contains it. This error is harmless.
    const before = await changes();
    try {
      // The client executes the copy as a statement, so the copy waits for open transactions. If this process opened
      // and closed the database file instead, the operating system would release SQLite's locks on the file (POSIX).
      await client.$executeRaw`VACUUM INTO ${copy}`.catch(async (error: unknown) => {
        throw outageOf(error) === "unwritable" ? await noSpaceError(client, copy, error) : error;
      });
      const handle = await open(copy, "r");
      return { file: handle, size: (await handle.stat()).size, changes: before };
    } finally {
      // The file is unlinked, but the open file stays readable. The operating system frees the disk space when the file
      // is closed, or when this process ends.
      rmSync(copy, { force: true });
    }
  };
  return {
    changes,
    async take() {
      const release = await mutex.acquire();
      try {
        // The incomplete file of an earlier process may still exist, if that process was killed during a copy.
        rmSync(copy, { force: true });
        return await take();
      } finally {
        release();
      }
    },
  };
}

/** Returns the error for a snapshot that does not fit on the disk. */
async function noSpaceError(client: PrismaClient, copy: string, error: unknown): Promise<DatabaseError> {
  const folder = dirname(copy);
  const [row] = await client.$queryRaw<
    { size: bigint }[]
  >`SELECT (page_count - freelist_count) * page_size AS "size"
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size`;
  const { bavail, bsize } = await statfs(folder);
  return new DatabaseError(
    `Cannot copy the database in the folder ${folder}: the copy needs ${row?.size} bytes, and ` +
      `${bavail * bsize} are free (${adapterErrorOf(error)?.code})`,
    { cause: error },
  );
}
