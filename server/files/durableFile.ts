import { randomUUID } from "node:crypto";
import {
  closeSync,
  createWriteStream,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * Writes a file that only its owner can read. The file appears under its name only when it is complete and on disk.
 */
export function writeDurably(file: string, text: string): void {
  const unfinished = `${file}.unfinished`;
  rmSync(unfinished, { force: true });
  writeNew(unfinished, text);
  moveDurably(unfinished, file);
}

/**
 * Writes a file like {@link writeDurably}, but never overwrites an existing file. If several processes call this
 * function concurrently, one process creates the file, and all processes then use that file.
 */
export function createDurably(file: string, text: string): void {
  const unfinished = `${file}.${randomUUID()}.unfinished`;
  try {
    writeNew(unfinished, text);
    // Unlike a rename, a link fails if the name exists.
    linkSync(unfinished, file);
    syncFolder(file);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  } finally {
    rmSync(unfinished, { force: true });
  }
}

function writeNew(file: string, text: string): void {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes the content of a stream to a file like {@link writeDurably}. If the stream fails, no part of the file remains.
 */
export async function streamDurably(file: string, content: Readable): Promise<void> {
  const unfinished = `${file}.unfinished`;
  rmSync(unfinished, { force: true });
  try {
    await pipeline(content, createWriteStream(unfinished, { flags: "wx", mode: 0o600 }));
    moveDurably(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
}

/** Flushes a complete file to disk and then renames the file. Replaces an existing file that has the new name. */
export function moveDurably(from: string, to: string): void {
  sync(from);
  renameSync(from, to);
  syncFolder(to);
}

/** Flushes the folder's list of file names to disk. */
function syncFolder(file: string): void {
  // Windows cannot open folders.
  if (process.platform !== "win32") sync(dirname(file));
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
