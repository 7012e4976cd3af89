import { existsSync, statfsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The folder in which Linux keeps files in memory. */
const MEMORY = "/dev/shm";
/** Minimum free space in this folder, in bytes: the maximum that the services of a test run store at the same time. */
const FREE_BYTES = 1024 ** 3;

/**
 * Returns the parent folder for data that a test run may lose. Prefers a folder in memory, which is faster than a disk.
 * @param freeBytes minimum free space, in bytes
 */
export function folderForData(freeBytes: number): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= freeBytes ? MEMORY : tmpdir();
}

/** Creates an empty folder for a service's data. */
export const makeDataDir = (): Promise<string> => mkdtemp(join(folderForData(FREE_BYTES), "gatehouse-test-"));
