import { statfs } from "node:fs/promises";
import type { FastifyBaseLogger } from "fastify";
import { readRows, sql } from "../db/sql/sql.ts";
import type { Services } from "../services.ts";

/**
 * Minimum free space, as a share of the file system and in bytes. If less space is free, the service logs a warning.
 */
const LOW = { share: 0.05, bytes: 512 * 1024 * 1024 };

/** The space of a file system, in bytes. */
interface Space {
  /** The free space that the service's user can use. */
  readonly free: number;
  readonly all: number;
}

async function spaceOf(folder: string): Promise<Space> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { free: bavail * bsize, all: blocks * bsize };
}

/**
 * Measures the free space for a SQLite database: the free space of the file system, plus the free pages in the database
 * file. Deletions free pages in the file, but the file does not shrink. SQLite uses the free pages before the file
 * grows.
 */
export class DiskSpace {
  readonly #services: Services;
  readonly #folder: string;
  readonly #log: FastifyBaseLogger;
  readonly #spaceOf: typeof spaceOf;
  #isLow = false;

  /**
   * @param folder the folder of the database file
   * @param space returns the space of a folder's file system; tests replace it
   */
  constructor(services: Services, folder: string, log: FastifyBaseLogger, space = spaceOf) {
    this.#services = services;
    this.#folder = folder;
    this.#log = log;
    this.#spaceOf = space;
  }

  /**
   * Sets the metrics. Logs a warning when the free space becomes low, and a message when the free space is sufficient
   * again.
   */
  async measure(): Promise<void> {
    const { db, metrics } = this.#services;
    const space = await this.#spaceOf(this.#folder);
    const [pages] = await readRows<{ readonly free: number | bigint; readonly size: number | bigint }>(
      db,
      sql`SELECT "freelist_count" AS "free", "page_size" AS "size" FROM pragma_freelist_count, pragma_page_size`,
    );
    const free = space.free + Number(pages?.free ?? 0) * Number(pages?.size ?? 0);
    metrics.freeSpace.set(free);
    const isLow = free < Math.max(LOW.share * space.all, LOW.bytes);
    if (isLow === this.#isLow) return;
    this.#isLow = isLow;
    const facts = { folder: this.#folder, freeBytes: free };
    if (isLow) this.#log.warn(facts, "the free space for the database is low");
    else this.#log.info(facts, "the free space for the database is no longer low");
  }
}
