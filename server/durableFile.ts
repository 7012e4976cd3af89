import { closeSync, createWriteStream, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Writes a file for its user alone. It appears under its name when it is whole and on the disk, or not at all. */
export function writeDurably(file: string, text: string): void {
  const unfinished = `${file}.unfinished`;
  rmSync(unfinished, { force: true });
  const descriptor = openSync(unfinished, "wx", 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  moveDurably(unfinished, file);
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
  // Windows cannot open folders.
  if (process.platform !== "win32") sync(dirname(to));
}

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
