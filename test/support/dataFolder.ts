import { existsSync, statfsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Linux's folder for files in memory. */
const MEMORY = "/dev/shm";
/** Bytes that must be free there: the most that a run's services store at once. */
const FREE_BYTES = 1024 ** 3;

/**
 * Returns the folder for data that may be lost with the machine. Prefers memory, which needs no disk.
 * @param freeBytes bytes that must be free
 */
export function folderForData(freeBytes: number): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= freeBytes ? MEMORY : tmpdir();
}

/** Creates an empty folder for a service's data. */
export const makeDataDir = (): Promise<string> => mkdtemp(join(folderForData(FREE_BYTES), "gatehouse-test-"));
