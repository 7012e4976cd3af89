import { existsSync, statfsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where Linux has files in memory. */
const MEMORY = "/dev/shm";
/** Bytes that must be free there: what the services of a run keep at once. */
const ROOM = 1024 ** 3;

/**
 * The folder for data that may be lost with the machine: nothing in it waits for a disk.
 * @param room bytes that must be free
 */
export function folderForData(room: number): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= room ? MEMORY : tmpdir();
}

/** A new, empty folder for a service's data. */
export const makeDataDir = (): Promise<string> => mkdtemp(join(folderForData(ROOM), "gatehouse-test-"));
