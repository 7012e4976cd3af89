import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { Logger } from "pino";
import type { EntriesResult, SessionEntries } from "../../features/sessions/addEntries.ts";
import type { LostData } from "../protocol.ts";
import { BATCH, type EntryWriter, type RecorderOptions, SessionRecorder } from "./SessionRecorder.ts";

/** Time, in milliseconds, for which the writer collects entries before it writes them. */
const COLLECTING = 200;
/**
 * Maximum delay after a write, in milliseconds. The limit is necessary because a write to a database that does not
 * respond fails only after several seconds.
 */
const LONGEST_REST = 2_000;

/** Writes session entries to the database. Returns the result of each session, in the same order. */
type WriteEntries = (sessions: readonly SessionEntries[]) => Promise<readonly EntriesResult[]>;

/** Options of a writer. */
interface WriterOptions {
  /**
   * Maximum number of characters of all waiting entries. Above this number, sessions with waiting output accept no more
   * output.
   */
  readonly capacity: number;
  /**
   * Patience: time, in milliseconds, for which a session retries a failed write before the setting
   * `session_record_failure` applies.
   */
  readonly patience: number;
}

/**
 * Writes the entries of this process's sessions in batches. After each write, the writer waits for as long as the write
 * took, so that other queries can use the database. Sessions take turns in the batches, so that no session delays the
 * other sessions. If a write fails, each session keeps its entries and tries again after a retry delay.
 */
export class SessionWriter implements EntryWriter {
  readonly log: Logger;
  readonly patience: number;
  readonly #write: WriteEntries;
  readonly #capacity: number;
  /** The sessions with unwritten entries. The session whose turn is next comes first. */
  readonly #dirty = new Set<SessionRecorder>();
  /** The sessions whose entries are being written. */
  #writing: readonly SessionRecorder[] = [];
  #waiting = { entries: 0, characters: 0 };
  #lost = { gaps: 0, bytes: 0 };
  /** Time, from `performance.now()`, of the first failed write of the current outage. */
  #failingSince: number | undefined;
  #running = false;
  #early = Promise.withResolvers<void>();

  constructor(write: WriteEntries, log: Logger, { capacity, patience }: WriterOptions) {
    this.#write = write;
    this.log = log;
    this.#capacity = capacity;
    this.patience = patience;
  }

  /** Opens the recorder of a session. */
  open(uid: string, options: RecorderOptions): SessionRecorder {
    return new SessionRecorder(uid, options, this);
  }

  /** Number of unwritten entries of all sessions, and number of characters of these entries. */
  get waiting(): { readonly entries: number; readonly characters: number } {
    return { ...this.#waiting };
  }

  get isCrowded(): boolean {
    return this.#waiting.characters >= this.#capacity;
  }

  count(entries: number, characters: number): void {
    this.#waiting.entries += entries;
    this.#waiting.characters += characters;
  }

  countLost({ gaps, bytes }: LostData): void {
    this.#lost.gaps += gaps;
    this.#lost.bytes += bytes;
  }

  /** Returns the amount of data that was lost since the last call. */
  takeLost(): LostData {
    const lost = this.#lost;
    this.#lost = { gaps: 0, bytes: 0 };
    return lost;
  }

  add(session: SessionRecorder, urgent: boolean): void {
    this.#dirty.add(session);
    if (urgent) this.#early.resolve();
    if (!this.#running) void this.#run();
  }

  /** Logs the entries that are lost because the process ends before they are written. */
  abandon(): void {
    for (const session of new Set([...this.#writing, ...this.#dirty])) {
      this.log.error(
        { session: session.uid, ...session.waiting },
        "the process ends before the last entries of a session are written; they are lost",
      );
    }
  }

  async #run(): Promise<void> {
    this.#running = true;
    // If the writer was idle, write the first entries immediately. Only later entries are collected.
    await turn();
    while (this.#dirty.size > 0) {
      const begun = performance.now();
      const ready = [...this.#dirty].filter(({ retryAt }) => retryAt <= begun);
      if (ready.length === 0) {
        await this.#wait(Math.min(...[...this.#dirty].map(({ retryAt }) => retryAt)) - begun);
        continue;
      }
      const wasFull = await this.#writeBatch(ready);
      await sleep(Math.min(performance.now() - begun, LONGEST_REST));
      if (!wasFull) await this.#wait(COLLECTING);
    }
    this.#running = false;
  }

  /** Waits for the given time, in milliseconds, or until a session has urgent entries. */
  async #wait(time: number): Promise<void> {
    const late = new AbortController();
    await Promise.race([
      this.#early.promise,
      sleep(time, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
    this.#early = Promise.withResolvers();
  }

  /**
   * Writes one batch of entries.
   * @param ready the sessions whose entries may be written now
   * @returns true if the batch was full
   */
  async #writeBatch(ready: readonly SessionRecorder[]): Promise<boolean> {
    let { characters, entries } = BATCH;
    const sessions: SessionRecorder[] = [];
    const batch: SessionEntries[] = [];
    for (const session of ready) {
      if (characters <= 0 || entries <= 0) break;
      const taken = session.take(characters, entries);
      entries -= taken.entries.length;
      characters -= taken.weight;
      sessions.push(session);
      batch.push({ uid: session.uid, after: taken.after, entries: taken.entries });
      this.#dirty.delete(session);
    }
    this.#writing = sessions;
    const results = await this.#results(batch);
    this.#writing = [];
    for (const [index, session] of sessions.entries()) {
      session.written(results[index] ?? "unknown");
      if (session.isDirty) this.add(session, session.isUrgent && !session.isFailing);
    }
    this.#report(results);
    return characters <= 0 || entries <= 0;
  }

  async #results(batch: readonly SessionEntries[]): Promise<readonly EntriesResult[]> {
    try {
      return await this.#write(batch);
    } catch (error) {
      this.log.error({ err: error, sessions: batch.length }, "cannot write session entries");
      return batch.map(() => "unknown");
    }
  }

  /** Logs the start and the end of an outage. Does not log each failed write. */
  #report(results: readonly EntriesResult[]): void {
    const failure = results.find(
      (result) => result !== "stored" && result !== "silenced" && result !== "rejected",
    );
    if (failure === undefined) {
      if (this.#failingSince === undefined || [...this.#dirty].some(({ isFailing }) => isFailing)) return;
      const seconds = Math.round((performance.now() - this.#failingSince) / 1000);
      this.#failingSince = undefined;
      this.log.info({ seconds }, "session entries are written again");
      return;
    }
    // If all writes failed, the writes of the other waiting sessions would fail too. So start the patience timers of
    // these sessions, although they have not tried to write. A patience timer measures how long a session retries.
    if (results.every((result) => result === failure)) for (const session of this.#dirty) session.watch();
    if (this.#failingSince !== undefined) return;
    this.#failingSince = performance.now();
    this.log.error({ database: failure }, "cannot write session entries; repeating until they are written");
  }
}
