import { StringDecoder } from "node:string_decoder";
import { setTimeout, setImmediate as turn } from "node:timers/promises";
import type { Logger } from "pino";
import type { OutputStream, SessionEntries, SessionEntry } from "../../features/sessions/addEntries.ts";
import type { EventData, TerminalSize } from "../protocol.ts";

/** Time, in milliseconds, for which the recorder collects entries before it writes them. */
const COLLECTING = 200;
/**
 * Maximum number of characters and entries in one write. The recorder writes at once when a session has that many
 * waiting characters, or half that many waiting entries.
 */
const BATCH = { characters: 64 * 1024, entries: 256 };
/** Maximum number of characters of recorded output in one entry. */
const CHUNK = 16_000;
/** Maximum size of a session's waiting entries. Above this size, the gateway pauses the session's client and device. */
const WAITING = { characters: 256 * 1024, entries: 256 };
/** Fixed overhead of an entry, in characters. An entry's size is the length of its text plus this overhead. */
const OVERHEAD = 128;

/** Writes session entries to the database. Returns the sessions whose output must no longer be recorded. */
type WriteEntries = (sessions: readonly SessionEntries[]) => Promise<readonly string[]>;

/**
 * Writes the entries of this process's sessions in batches. After each write, the recorder pauses for as long as the
 * write took, so that other queries can use the database. Each batch contains entries of the sessions in turn, so that
 * no session delays other sessions.
 */
export class SessionWriter {
  readonly #write: WriteEntries;
  readonly #log: Logger;
  /** The sessions with entries to write, in the order of their turns. */
  readonly #dirty = new Set<SessionRecorder>();
  #running = false;
  #early = Promise.withResolvers<void>();

  constructor(write: WriteEntries, log: Logger) {
    this.#write = write;
    this.#log = log;
  }

  /**
   * Opens the recorder of a session.
   * @param recording whether output is recorded
   */
  open(uid: string, recording: boolean): SessionRecorder {
    return new SessionRecorder(uid, recording, this);
  }

  /** Number of the waiting entries of all sessions, and number of their characters. */
  get waiting(): { readonly entries: number; readonly characters: number } {
    let [entries, characters] = [0, 0];
    for (const session of this.#dirty) {
      entries += session.waiting.entries;
      characters += session.waiting.characters;
    }
    return { entries, characters };
  }

  /** Schedules a session with entries to write. */
  add(session: SessionRecorder, urgent: boolean): void {
    this.#dirty.add(session);
    if (urgent) this.#early.resolve();
    if (!this.#running) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    // The first entries after a pause are written at once. Only later entries are collected.
    await turn();
    while (this.#dirty.size > 0) {
      const begun = performance.now();
      const wasFull = await this.#writeBatch();
      const took = performance.now() - begun;
      await setTimeout(took);
      if (!wasFull) await this.#collect();
    }
    this.#running = false;
  }

  async #collect(): Promise<void> {
    const late = new AbortController();
    await Promise.race([
      this.#early.promise,
      setTimeout(COLLECTING, undefined, { signal: late.signal }).catch(() => {}),
    ]);
    late.abort();
    this.#early = Promise.withResolvers();
  }

  /**
   * Writes one batch of entries.
   * @returns true if the batch was full
   */
  async #writeBatch(): Promise<boolean> {
    let { characters, entries } = BATCH;
    const batch: { readonly session: SessionRecorder; readonly entries: readonly SessionEntry[] }[] = [];
    for (const session of [...this.#dirty]) {
      if (characters <= 0 || entries <= 0) break;
      const taken = session.take(characters, entries);
      entries -= taken.entries.length;
      characters -= taken.weight;
      batch.push({ session, entries: taken.entries });
      this.#dirty.delete(session);
    }
    let silenced: readonly string[] = [];
    try {
      silenced = await this.#write(batch.map(({ session: { uid }, entries }) => ({ uid, entries })));
    } catch (error) {
      // The login continues. The entries are lost, and the log reports the loss to the operator.
      this.#log.error(
        { err: error, sessions: batch.length },
        "cannot write session entries; these entries are lost",
      );
    }
    const stopped = new Set(silenced);
    for (const { session } of batch) {
      session.written(stopped.has(session.uid));
      if (session.isDirty) this.add(session, session.isUrgent);
    }
    return characters <= 0 || entries <= 0;
  }
}

const weightOf = (entry: SessionEntry): number =>
  OVERHEAD +
  (entry.kind === "output" ? entry.text.length : entry.kind === "event" ? lengthOf(entry.data) : 0);

const lengthOf = (data: object): number =>
  Object.values(data).reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 8), 0);

/** The waiting events and recorded output of a session, in order, until the recorder writes them to the database. */
export class SessionRecorder {
  readonly uid: string;
  readonly #writer: SessionWriter;
  readonly #decoders = new Map<string, StringDecoder>();
  #recording: boolean;
  #waiting: SessionEntry[] = [];
  #weight = 0;
  #writing = false;
  #hasBegun = false;
  #notFull = Promise.withResolvers<void>();
  #idle = Promise.withResolvers<void>();

  constructor(uid: string, recording: boolean, writer: SessionWriter) {
    this.uid = uid;
    this.#recording = recording;
    this.#writer = writer;
  }

  /** True while output is recorded. Recording ends when the recording reaches its size limit. */
  get recording(): boolean {
    return this.#recording;
  }

  get isDirty(): boolean {
    return this.#waiting.length > 0;
  }

  /** Number of waiting entries, and number of their characters. */
  get waiting(): { readonly entries: number; readonly characters: number } {
    return { entries: this.#waiting.length, characters: this.#weight };
  }

  /** True if the waiting entries fill a batch. */
  get isUrgent(): boolean {
    return this.#weight >= BATCH.characters || this.#waiting.length >= BATCH.entries / 2;
  }

  /** True if code that adds entries must first wait for {@link room}. */
  get isFull(): boolean {
    return this.#weight >= WAITING.characters || this.#waiting.length >= WAITING.entries;
  }

  /** Settles when the recorder accepts more entries. */
  async room(): Promise<void> {
    while (this.isFull) await this.#notFull.promise;
  }

  /** Starts writing entries. Called when the database contains the session. */
  begun(): void {
    this.#hasBegun = true;
    if (this.isDirty) this.#writer.add(this, true);
  }

  /** Records that the device has accepted the login. */
  authenticated(): void {
    this.#add({ kind: "authenticated" });
  }

  /** Records the session's type, which the client's first request determines. */
  describe(type: string, term: string | undefined): void {
    this.#add({ kind: "described", type, ...(term && { term }) });
  }

  /** Adds an event of the channel with the number `seat`. Of consecutive size changes, only the last one is kept. */
  event(seat: number, type: string, data: EventData): void {
    const last = this.#waiting.at(-1);
    if (type === "window-change" && last?.kind === "event" && last.type === type && last.seat === seat) {
      this.#remove(last);
    }
    this.#add({ kind: "event", seat, type, at: new Date(), data });
  }

  /**
   * Records output of the channel with the number `seat`.
   * @param stream the stream to which the command has written
   * @returns settles when the recorder accepts more output
   */
  async record(seat: number, stream: OutputStream, output: Buffer, size: TerminalSize): Promise<void> {
    if (!this.#recording) return;
    const name = `${seat} ${stream}`;
    const decoder = this.#decoders.get(name) ?? new StringDecoder("utf8");
    this.#decoders.set(name, decoder);
    let text = decoder.write(output);
    const last = this.#waiting.at(-1);
    if (
      last?.kind === "output" &&
      last.seat === seat &&
      last.stream === stream &&
      isSame(last.size, size) &&
      last.text.length < CHUNK
    ) {
      this.#remove(last);
      text = last.text + text;
    }
    for (let start = 0; start < text.length; start += CHUNK) {
      this.#add({ kind: "output", seat, stream, text: text.slice(start, start + CHUNK), size });
    }
    if (this.isFull) await this.room();
  }

  /** Settles when all entries are written. Entries of a session that has never begun are discarded. */
  async finish(): Promise<void> {
    if (!this.#hasBegun) {
      this.#waiting = [];
      this.#weight = 0;
      this.written(false);
      return;
    }
    while (this.isDirty || this.#writing) {
      this.#writer.add(this, true);
      await this.#idle.promise;
    }
  }

  /** Returns the next entries to write, up to a size. Returns at least one entry. */
  take(
    characters: number,
    entries: number,
  ): { readonly entries: readonly SessionEntry[]; readonly weight: number } {
    let count = 0;
    let weight = 0;
    for (const entry of this.#waiting) {
      const added = weightOf(entry);
      if (count > 0 && (count >= entries || weight + added > characters)) break;
      count += 1;
      weight += added;
    }
    this.#weight -= weight;
    this.#writing = true;
    return { entries: this.#waiting.splice(0, count), weight };
  }

  /**
   * Called when the entries that {@link take} returned have been written.
   * @param silenced true to stop recording output
   */
  written(silenced: boolean): void {
    this.#writing = false;
    if (silenced) this.#recording = false;
    this.#notFull.resolve();
    this.#notFull = Promise.withResolvers();
    this.#idle.resolve();
    this.#idle = Promise.withResolvers();
  }

  #remove(last: SessionEntry): void {
    this.#waiting.pop();
    this.#weight -= weightOf(last);
  }

  #add(entry: SessionEntry): void {
    this.#waiting.push(entry);
    this.#weight += weightOf(entry);
    // The entry `authenticated` is written at once, because a session must be listed as active as soon as its client is
    // logged in.
    if (this.#hasBegun) this.#writer.add(this, this.isUrgent || entry.kind === "authenticated");
  }
}

const isSame = (one: TerminalSize, other: TerminalSize): boolean =>
  one.width === other.width && one.height === other.height;
