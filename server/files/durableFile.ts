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

/** Writes a file for its user alone. It appears under its name when it is whole and on the disk, or not at all. */
export function writeDurably(file: string, text: string): void {
  const unfinished = `${file}.unfinished`;
  rmSync(unfinished, { force: true });
  writeNew(unfinished, text);
  moveDurably(unfinished, file);
}

/**
 * The same where there is no such file yet; one that is there stays as it is. Of several processes that do it at once
 * one writes the file, and all find the same one afterwards.
 */
export function createDurably(file: string, text: string): void {
  const unfinished = `${file}.${randomUUID()}.unfinished`;
  try {
    writeNew(unfinished, text);
    // Unlike a new name for the file, a second one is refused where another file has it.
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

/** The same for content that comes bit by bit; nothing is left of one that breaks off. */
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

/** Gives a file that is whole, once it is on the disk, another name; one that has the name is replaced. */
export function moveDurably(from: string, to: string): void {
  sync(from);
  renameSync(from, to);
  syncFolder(to);
}

/** Makes the names in a file's folder durable. */
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
