import { type FileHandle, open, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { parseJson } from "@gatehouse-access/sdk/json";
import { BackendError, LockedError } from "../errors.ts";
import { isNoSuchFile, removeIfThere, syncFolder } from "../files.ts";
import type { StoredOperation, StoredResource } from "./crypter.ts";

/** One change of the state: an entry is set or removed. Entries have keys for the length of a run. */
export type StoredMutation =
  | { readonly put: string; readonly state: StoredResource }
  | { readonly drop: string };

/** One line of a journal. */
export type JournalLine =
  | { readonly line: "head"; readonly version: 1; readonly base: string; readonly time: string }
  | { readonly line: "begin"; readonly id: number; readonly operation: StoredOperation }
  | { readonly line: "end"; readonly id?: number; readonly mutations: readonly StoredMutation[] }
  | { readonly line: "rename"; readonly from: string; readonly to: string }
  | { readonly line: "commit"; readonly hash: string };

/**
 * The journal of a run: one JSON line for each finished step, made durable at once. Lines that come together share one
 * sync to disk. A line that cannot be written ends the journal: nobody could read what came after half a line.
 */
export class Journal {
  readonly #path: string;
  readonly #file: FileHandle;
  #failure: BackendError | undefined;
  #queue: string[] = [];
  #waiting: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  #flushing: Promise<void> | undefined;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /**
   * Starts a journal.
   * @param base hash of the state that its lines change
   * @throws LockedError where there is a journal already; BackendError where it cannot be written
   */
  static async create(path: string, base: string): Promise<Journal> {
    const file = await open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
      throw new LockedError(
        `Another run was killed just now (${path}). Run the command again to merge its steps.`,
      );
    });
    const journal = new Journal(path, file);
    try {
      await journal.append({ line: "head", version: 1, base, time: new Date().toISOString() });
    } catch (error) {
      await file.close();
      await removeIfThere(path);
      throw error;
    }
    await syncFolder(dirname(path));
    return journal;
  }

  /**
   * Adds a line; resolves once it is on disk.
   * @throws BackendError where it, or one before it, cannot be written
   */
  append(line: JournalLine): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queue.push(`${JSON.stringify(line)}\n`);
      this.#waiting.push({ resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Adds a line that reaches the disk together with the next one of `append`. */
  appendLater(line: JournalLine): void {
    this.#queue.push(`${JSON.stringify(line)}\n`);
  }

  async #flush(): Promise<void> {
    // One turn of the event loop lets lines that come together share the sync.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const text = this.#queue.join("");
      const waiting = this.#waiting;
      this.#queue = [];
      this.#waiting = [];
      try {
        await this.#write(text);
        for (const waiter of waiting) waiter.resolve();
      } catch (error) {
        for (const waiter of waiting) waiter.reject(error);
      }
    }
    this.#flushing = undefined;
  }

  async #write(text: string): Promise<void> {
    if (this.#failure) throw this.#failure;
    try {
      await this.#file.appendFile(text);
      await this.#file.datasync();
    } catch (error) {
      this.#failure = new BackendError(`${this.#path} cannot be written: ${(error as Error).message}`);
      throw this.#failure;
    }
  }

  /** Closes the file once all lines are on disk. */
  async close(): Promise<void> {
    await this.#flushing;
    await this.#file.close();
  }
}

/** Adds to the journal of a dead process the hash of the state into which its lines are about to be merged. */
export async function appendCommit(path: string, hash: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    const text = await file.readFile("utf8");
    const whole = text.lastIndexOf("\n") + 1;
    // A line cut off by a crash would make the next one unreadable.
    await file.truncate(Buffer.byteLength(text.slice(0, whole)));
    const line: JournalLine = { line: "commit", hash };
    await file.write(`${JSON.stringify(line)}\n`, Buffer.byteLength(text.slice(0, whole)));
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Reads a journal; undefined where there is none. A last line that a crash cut off is left out: nobody was told that
 * its step was finished.
 * @throws BackendError where another line cannot be read
 */
export async function readJournal(path: string): Promise<JournalLine[] | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (isNoSuchFile(error)) return undefined;
    throw error;
  }
  const lines = text.split("\n");
  lines.pop();
  return lines.map((line, index) => {
    try {
      return parseJson(line) as JournalLine;
    } catch (error) {
      throw new BackendError(`${path}:${index + 1} is damaged: ${(error as Error).message}`);
    }
  });
}
