import { randomUUID } from "node:crypto";
import { open, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Replaces a file so that after a crash either the old or the new content is there, whole.
 * @param before done once the new content is on disk, while the old one is still in place
 */
export async function writeDurably(
  path: string,
  content: string | Uint8Array,
  before = async (): Promise<void> => {},
): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  const file = await open(temporary, "w", 0o600);
  try {
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await before();
    await rename(temporary, path);
  } catch (error) {
    // It would take the room that a full disk lacks.
    await removeIfThere(temporary);
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Makes new, renamed and removed entries of a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Removes a file that may be gone already. */
export async function removeIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!isNoSuchFile(error)) throw error;
  }
}

/** True where the error says that a file or folder is not there. */
export function isNoSuchFile(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === "ENOENT";
}
