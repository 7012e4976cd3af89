import { type FileHandle, open, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { parseJson } from "@gatehouse-access/sdk/json";
import { BackendError, LockedError } from "../errors.ts";
import { ifThere, removeIfThere, syncFolder } from "../files.ts";
import type { StateCodec, StoredOperation, StoredResource } from "./crypter.ts";
import { type PendingOperation, type ResourceState, renameAll, topologicalOrder } from "./resourceState.ts";

/** A resource in the state, with a key that identifies the entry during a run. */
export interface Entry {
  readonly key: string;
  readonly state: ResourceState;
}

/** A change to the state: `put` sets the entry with this key, and `drop` removes the entry with this key. */
type Change<State> = { readonly put: string; readonly state: State } | { readonly drop: string };
export type Mutation = Change<ResourceState>;
type StoredMutation = Change<StoredResource>;

export class Snapshot {
  readonly #entries = new Map<string, ResourceState>();
  readonly #codec: StateCodec;
  readonly #pending = new Map<number, PendingOperation>();
  #earlierPending: PendingOperation[];
  readonly #renamed = new Map<string, string>();
  #changed = false;
  readonly #unsaved = new Map<string, ResourceState>();
  #journal: Journal | undefined;
  #onFailure: (error: Error) => void = () => {};
  #nextKey = 0;
  #nextOperation = 0;

  constructor(resources: readonly StoredResource[], pending: readonly StoredOperation[], codec: StateCodec) {
    this.#codec = codec;
    resources.forEach((stored, index) => {
      this.#entries.set(`o${index}`, codec.decode(stored));
    });
    this.#earlierPending = pending.map((operation) => codec.decodeOperation(operation));
  }

  /** Writes all later changes to the journal. Calls `onFailure` if a write fails. */
  useJournal(journal: Journal, onFailure: (error: Error) => void): void {
    this.#journal = journal;
    this.#onFailure = onFailure;
  }

  /** The resources whose changes are not in the journal, because a write failed. */
  get unsaved(): ResourceState[] {
    return [...this.#unsaved.values()];
  }

  newKey(): string {
    return `n${this.#nextKey++}`;
  }

  entries(): Entry[] {
    return [...this.#entries].map(([key, state]) => ({ key, state }));
  }

  get(key: string): ResourceState | undefined {
    return this.#entries.get(key);
  }

  get earlierPending(): readonly PendingOperation[] {
    return this.#earlierPending;
  }

  /**
   * True if the run has changed the state since it read the state. In a dry run, true if the real run would change the
   * state.
   */
  get changed(): boolean {
    return this.#changed;
  }

  /** Records in a dry run that the real run would change the state. */
  wouldChange(): void {
    this.#changed = true;
  }

  settle(settled: (operation: PendingOperation) => boolean): void {
    const left = this.#earlierPending.filter((operation) => !settled(operation));
    this.#changed ||= left.length < this.#earlierPending.length;
    this.#earlierPending = left;
  }

  /** Changes the URN of a resource, and replaces the old URN in all references. */
  rename(oldUrn: string, newUrn: string): void {
    this.#renamed.set(oldUrn, newUrn);
    this.#changed = true;
    this.#journal?.appendLater({ line: "rename", from: oldUrn, to: newUrn });
  }

  /**
   * Records an operation in the journal before the provider is called.
   * @throws BackendError if the journal cannot be written
   */
  async begin(type: PendingOperation["type"], resource: ResourceState): Promise<number> {
    const id = this.#nextOperation++;
    const operation = { type, resource };
    this.#pending.set(id, operation);
    try {
      await this.#append({ line: "begin", id, operation: this.#codec.encodeOperation(operation) });
    } catch (error) {
      this.#pending.delete(id);
      throw error;
    }
    return id;
  }

  /**
   * Records the changes of a finished operation. Resolves when the journal is on disk. If the journal cannot be
   * written, resolves after the call to `onFailure`.
   */
  async end(id: number | undefined, mutations: readonly Mutation[]): Promise<void> {
    const touched = mutations.flatMap((mutation) =>
      "drop" in mutation ? (this.#entries.get(mutation.drop) ?? []) : mutation.state,
    );
    this.#apply(mutations);
    if (id !== undefined) this.#pending.delete(id);
    if (!this.#journal) return;
    const stored = mutations.map((mutation) => this.#encode(mutation));
    try {
      await this.#append({ line: "end", id, mutations: stored });
    } catch {
      for (const state of touched) this.#unsaved.set(state.urn, state);
    }
  }

  async #append(line: JournalLine): Promise<void> {
    try {
      await this.#journal?.append(line);
    } catch (error) {
      this.#onFailure(error as Error);
      throw error;
    }
  }

  /**
   * Changes the state without a call to a provider. The journal may write these changes together with a later step.
   */
  change(mutations: readonly Mutation[]): void {
    this.#apply(mutations);
    const stored = mutations.map((mutation) => this.#encode(mutation));
    this.#journal?.appendLater({ line: "end", mutations: stored });
  }

  /**
   * Applies the journal of an earlier run. Returns the number of finished steps in that journal, and the number of
   * operations that were in flight.
   */
  replay(lines: readonly JournalLine[]): { finished: number; inFlight: number } {
    let finished = 0;
    for (const line of lines) {
      if (line.line === "begin") this.#pending.set(line.id, this.#codec.decodeOperation(line.operation));
      else if (line.line === "rename") this.rename(line.from, line.to);
      else if (line.line === "end") {
        if (line.id !== undefined) this.#pending.delete(line.id);
        this.#apply(line.mutations.map((mutation) => this.#decode(mutation)));
        if (line.mutations.length > 0) finished += 1;
      }
    }
    return { finished, inFlight: this.#pending.size };
  }

  /** Returns the content of the state file: the sorted resources, and the operations that are still in flight. */
  stored(): { resources: StoredResource[]; pendingOperations: StoredOperation[] } {
    const states = renameAll([...this.#entries.values()], this.#renamed);
    const pending = [...this.#earlierPending, ...this.#pending.values()];
    return {
      resources: topologicalOrder(states).map((state) => this.#codec.encode(state)),
      pendingOperations: pending.map((operation) => this.#codec.encodeOperation(operation)),
    };
  }

  /**
   * Applies changes, and resolves pending operations of earlier runs. A new entry resolves the pending create operation
   * of its resource. A removed entry resolves all other pending operations of its resource.
   */
  #apply(mutations: readonly Mutation[]): void {
    this.#changed ||= mutations.length > 0;
    for (const mutation of mutations) {
      const isEnd = "drop" in mutation;
      const key = isEnd ? mutation.drop : mutation.put;
      const known = this.#entries.get(key);
      if (isEnd) this.#entries.delete(key);
      else this.#entries.set(key, mutation.state);
      if (isEnd === (known === undefined)) continue;
      const { urn } = isEnd ? (known as ResourceState) : mutation.state;
      this.settle(({ type, resource }) => resource.urn === urn && (type === "creating") !== isEnd);
    }
  }

  #encode(mutation: Mutation): StoredMutation {
    return "drop" in mutation ? mutation : { ...mutation, state: this.#codec.encode(mutation.state) };
  }

  #decode(mutation: StoredMutation): Mutation {
    return "drop" in mutation ? mutation : { ...mutation, state: this.#codec.decode(mutation.state) };
  }
}

export type JournalLine =
  | { readonly line: "head"; readonly version: 1; readonly base: string; readonly time: string }
  | { readonly line: "begin"; readonly id: number; readonly operation: StoredOperation }
  | { readonly line: "end"; readonly id?: number; readonly mutations: readonly StoredMutation[] }
  | { readonly line: "rename"; readonly from: string; readonly to: string }
  | { readonly line: "commit"; readonly hash: string };

/**
 * The journal of a run. The journal contains a JSON line for each finished step, and writes each line to disk
 * immediately. Concurrent lines share one sync to disk. If a line cannot be written, the journal accepts no more lines,
 * since lines after an incomplete line could not be parsed.
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
   * Creates the journal of a run.
   * @param base hash of the state that the run changes
   * @throws LockedError if the journal already exists; BackendError if it cannot be written
   */
  static async create(path: string, base: string): Promise<Journal> {
    const file = await open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
      throw new LockedError(
        `Another run was killed a moment ago. Run the command again to merge its steps (${path}).`,
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
   * Adds a line. Resolves when the line is on disk.
   * @throws BackendError if this line or an earlier line cannot be written
   */
  append(line: JournalLine): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queue.push(`${JSON.stringify(line)}\n`);
      this.#waiting.push({ resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Adds a line that is written together with the next line of `append`. */
  appendLater(line: JournalLine): void {
    this.#queue.push(`${JSON.stringify(line)}\n`);
  }

  async #flush(): Promise<void> {
    // Waits for one turn of the event loop, so that concurrent lines share one sync to disk.
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

  /** Closes the file after all lines are on disk. */
  async close(): Promise<void> {
    await this.#flushing;
    await this.#file.close();
  }
}

/**
 * Adds the hash of the merged state to the journal of a dead process. Call this function before the merged state is
 * written.
 */
export async function appendCommit(path: string, hash: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    const text = await file.readFile("utf8");
    const whole = text.lastIndexOf("\n") + 1;
    // Removes the last line if a crash truncated it. Otherwise, the new line could not be parsed.
    await file.truncate(Buffer.byteLength(text.slice(0, whole)));
    const line: JournalLine = { line: "commit", hash };
    await file.write(`${JSON.stringify(line)}\n`, Buffer.byteLength(text.slice(0, whole)));
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Reads a journal. Ignores a truncated last line, because the run crashed during the write and never reported this step
 * as finished.
 * @throws BackendError if any other line cannot be parsed
 */
export async function readJournal(path: string): Promise<JournalLine[] | undefined> {
  const text = await ifThere(readFile(path, "utf8"));
  const lines = text?.split("\n").slice(0, -1);
  return lines?.map((line, index) => {
    try {
      return parseJson(line) as JournalLine;
    } catch (error) {
      throw new BackendError(`${path}:${index + 1} is damaged: ${(error as Error).message}`);
    }
  });
}
