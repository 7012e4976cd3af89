import { StringDecoder } from "node:string_decoder";
import type { Logger } from "pino";
import type {
  EntriesResult,
  OutputEntry,
  OutputStream,
  RecordingGap,
  SessionEntry,
} from "../../features/sessions/addEntries.ts";
import type { EventData, LostData, TerminalSize } from "../protocol.ts";

/**
 * Maximum number of characters and entries in one write. The writer writes immediately when a session has this number
 * of waiting characters, or half this number of waiting entries.
 */
export const BATCH = { characters: 64 * 1024, entries: 256 };
/** Maximum number of characters of recorded output in one entry. */
const CHUNK = 16_000;
/**
 * Maximum number of characters and entries that a session has not written yet. Entries that are being written count
 * too. Above this size, the device's output waits. Above twice this size, the gateway also stops reading from the
 * client, because the client's requests cause events. The higher limit for the client lets keystrokes reach the device
 * while its output waits.
 */
const WAITING = { characters: 256 * 1024, entries: 256 };
/** Fixed overhead of an entry, in characters. An entry's size is the length of its text plus this overhead. */
const OVERHEAD = 128;
/**
 * Maximum number of gaps of a session that are counted separately. A gap contains the lost data of one seat (channel
 * number). When this number is reached, lost data of further seats is added to one of these gaps.
 */
const GAPS = 64;
/**
 * Minimum and maximum retry delay of a failed write, in milliseconds. Each delay is twice as long as the previous
 * delay, up to the maximum.
 */
const PAUSE = { first: 200, longest: 5_000 };

/** Options of a session's recorder. */
export interface RecorderOptions {
  /** Whether output is recorded. */
  readonly recording: boolean;
  /**
   * Called when the session's entries could not be written within the time `patience` of the writer. @default the
   * session continues; output that does not fit into the queue is lost
   */
  readonly onRecordFailure?: (() => void) | undefined;
}

/** The functions of the session writer that a recorder uses. All sessions share one writer. */
export interface EntryWriter {
  readonly log: Logger;
  /**
   * Patience: time, in milliseconds, for which a session retries a failed write before the setting
   * `session_record_failure` applies.
   */
  readonly patience: number;
  /** True if the waiting entries of all sessions together use the writer's whole capacity. */
  readonly isCrowded: boolean;
  /** Adds a session to the sessions whose entries the writer writes next. */
  add(session: SessionRecorder, urgent: boolean): void;
  /** Adds to the counts of waiting entries and characters. Negative numbers subtract. */
  count(entries: number, characters: number): void;
  countLost(data: LostData): void;
}

/** A gap in the recording that has not been written yet. Further lost data enlarges the gap. */
type OpenGap = { -readonly [Field in keyof RecordingGap]: RecordingGap[Field] };

const weightOf = (entry: SessionEntry): number =>
  OVERHEAD +
  (entry.kind === "output" ? entry.text.length : entry.kind === "event" ? lengthOf(entry.data) : 0);

const weightOfAll = (entries: readonly SessionEntry[]): number =>
  entries.reduce((sum, entry) => sum + weightOf(entry), 0);

const lengthOf = (data: object): number =>
  Object.values(data).reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 8), 0);

/**
 * The queue of a session's events and recorded output. The queue keeps the entries, in order, until the writer has
 * written them to the database. A failed write is repeated with the same entries, so that the database recognizes the
 * entries that it has already stored.
 */
export class SessionRecorder {
  readonly uid: string;
  readonly #writer: EntryWriter;
  readonly #onRecordFailure: (() => void) | undefined;
  readonly #decoders = new Map<string, StringDecoder>();
  #recording: boolean;
  /** The entries of the current write. If the last write failed, the entries of that write. */
  #taken: readonly SessionEntry[] = [];
  #waiting: SessionEntry[] = [];
  #weight = 0;
  /** Number of entries that are stored, or that are lost because the database rejected them. */
  #done = 0;
  #writing = false;
  #hasBegun = false;
  #isFinishing = false;
  #failures = 0;
  /** Earliest time, by `performance.now()`, at which a failed write is repeated. */
  retryAt = 0;
  #patience: NodeJS.Timeout | undefined;
  /** True if the session is overdue: its entries could not be written within the time `patience` of the writer. */
  #isOverdue = false;
  /** The open gaps, by seat (channel number). No write contains an open gap yet. */
  readonly #gaps = new Map<number, OpenGap>();
  #notFull = Promise.withResolvers<void>();
  #idle = Promise.withResolvers<void>();

  constructor(uid: string, { recording, onRecordFailure }: RecorderOptions, writer: EntryWriter) {
    this.uid = uid;
    this.#recording = recording;
    this.#onRecordFailure = onRecordFailure;
    this.#writer = writer;
  }

  /** True while output is recorded. Output is no longer recorded when the recording has reached its size limit. */
  get recording(): boolean {
    return this.#recording;
  }

  get isDirty(): boolean {
    return this.#taken.length + this.#waiting.length > 0;
  }

  /** True if the last write failed. */
  get isFailing(): boolean {
    return this.#failures > 0;
  }

  /** Number of unwritten entries, and number of characters of these entries. */
  get waiting(): { readonly entries: number; readonly characters: number } {
    return { entries: this.#taken.length + this.#waiting.length, characters: this.#weight };
  }

  /** True if the waiting entries fill a batch. */
  get isUrgent(): boolean {
    return this.#weight >= BATCH.characters || this.#waiting.length >= BATCH.entries / 2;
  }

  /** True if output must wait for {@link room}. */
  get isFull(): boolean {
    return this.#exceeds(1) || (this.#writer.isCrowded && this.#weight >= CHUNK);
  }

  /**
   * True if the gateway must stop reading from the client until {@link room} resolves, because the client's requests
   * have caused too many events.
   */
  get isOverfull(): boolean {
    return this.#exceeds(2);
  }

  #exceeds(times: number): boolean {
    const { entries, characters } = this.waiting;
    return characters >= times * WAITING.characters || entries >= times * WAITING.entries;
  }

  /**
   * Resolves when the recorder accepts more entries. An overdue recorder never makes the caller wait, and discards the
   * entries that do not fit.
   */
  async room(): Promise<void> {
    while (this.isFull && !this.#isOverdue) await this.#notFull.promise;
  }

  /** Starts writing entries. Called after the session has been written to the database. */
  begun(): void {
    this.#hasBegun = true;
    if (this.isDirty) this.#writer.add(this, true);
  }

  /** Records that the device accepted the login. */
  authenticated(): void {
    this.#add({ kind: "authenticated" });
  }

  /** Records the session's type. The client's first request determines the type. */
  describe(type: string, term: string | undefined): void {
    this.#add({ kind: "described", type, ...(term && { term }) });
  }

  /** Adds an event of the channel with the number `seat`. For consecutive size changes, keeps only the last one. */
  event(seat: number, type: string, data: EventData): void {
    const last = this.#waiting.at(-1);
    if (type === "window-change" && last?.kind === "event" && last.type === type && last.seat === seat) {
      this.#removeLast(last);
    }
    if (this.#isOverdue && this.isOverfull) this.#lose(seat, 0);
    else this.#add({ kind: "event", seat, type, at: new Date(), data });
  }

  /**
   * Records output of the channel with the number `seat`.
   * @param stream the stream to which the command wrote the output
   * @returns resolves when the recorder accepts more output
   */
  async record(seat: number, stream: OutputStream, output: Buffer, size: TerminalSize): Promise<void> {
    if (!this.#recording) return;
    const name = `${seat} ${stream}`;
    if (this.#isOverdue && this.isFull) {
      this.#decoders.delete(name);
      this.#lose(seat, output.length, size);
      return;
    }
    const decoder = this.#decoders.get(name) ?? new StringDecoder("utf8");
    this.#decoders.set(name, decoder);
    let text = decoder.write(output);
    let at = new Date();
    const last = this.#waiting.at(-1);
    if (
      last?.kind === "output" &&
      last.seat === seat &&
      last.stream === stream &&
      isSame(last.size, size) &&
      last.text.length < CHUNK
    ) {
      this.#removeLast(last);
      text = last.text + text;
      at = last.at;
    }
    for (let start = 0; start < text.length; start += CHUNK) {
      this.#add({ kind: "output", at, seat, stream, text: text.slice(start, start + CHUNK), size });
    }
    if (this.isFull) await this.room();
  }

  /**
   * Resolves when all entries have been written. During a database outage, the promise stays pending until the outage
   * ends. Discards the entries of a session that never began.
   */
  async finish(): Promise<void> {
    this.#isFinishing = true;
    if (!this.#hasBegun) {
      this.#count(-this.#waiting.length, -this.#weight);
      this.#waiting = [];
      this.#wake();
      return;
    }
    this.#shrink();
    while (this.isDirty || this.#writing) {
      if (!this.#writing) this.#writer.add(this, true);
      await this.#idle.promise;
    }
    this.#resetFailure();
  }

  /**
   * Returns the next entries to write, but at most the given numbers of characters and entries. Returns at least one
   * entry, even if it exceeds the limits. After a failed write, returns the same entries again.
   */
  take(
    characters: number,
    entries: number,
  ): { readonly after: number; readonly entries: readonly SessionEntry[]; readonly weight: number } {
    if (this.#taken.length === 0) {
      let count = 0;
      let weight = 0;
      for (const entry of this.#waiting) {
        weight += weightOf(entry);
        if (count > 0 && (count >= entries || weight > characters)) break;
        count += 1;
      }
      this.#taken = this.#waiting.splice(0, count);
      for (const entry of this.#taken) if (entry.kind === "gap") this.#gaps.delete(entry.seat);
    }
    this.#writing = true;
    this.watch();
    return { after: this.#done, entries: this.#taken, weight: weightOfAll(this.#taken) };
  }

  /** Handles the result of writing the entries that {@link take} returned. */
  written(result: EntriesResult): void {
    this.#writing = false;
    if (result === "stored" || result === "silenced") {
      if (result === "silenced") this.#recording = false;
      this.#drop(this.#taken);
      this.#resetFailure();
    } else if (result === "rejected") this.#skipRejected();
    else this.#fail();
    this.#wake();
  }

  /** Starts the timer after which the setting `session_record_failure` applies. A successful write stops the timer. */
  watch(): void {
    if (this.#patience !== undefined) return;
    this.#patience = setTimeout(() => this.#becomeOverdue(), this.#writer.patience).unref();
  }

  #resetFailure(): void {
    clearTimeout(this.#patience);
    this.#patience = undefined;
    this.#isOverdue = false;
    this.#failures = 0;
    this.retryAt = 0;
  }

  #fail(): void {
    const pause = Math.min(PAUSE.first * 2 ** this.#failures, PAUSE.longest);
    this.#failures += 1;
    // Randomize the retry delay, so that the sessions do not all use the database at the same time.
    this.retryAt = performance.now() + pause * (0.5 + Math.random() / 2);
  }

  /**
   * Skips an entry that the database rejects because of its values. To find this entry, halves the batch after each
   * rejection until the batch contains only one entry.
   */
  #skipRejected(): void {
    const [first] = this.#taken;
    if (this.#taken.length > 1) {
      const half = Math.ceil(this.#taken.length / 2);
      this.#waiting.unshift(...this.#taken.slice(half));
      this.#taken = this.#taken.slice(0, half);
      return;
    }
    this.#drop(this.#taken);
    if (first?.kind === "output") {
      this.#lose(first.seat, Buffer.byteLength(first.text), first.size, first.at);
    } else if (first?.kind === "event") this.#lose(first.seat, 0, undefined, first.at);
    if (!this.isDirty) this.#resetFailure();
  }

  #becomeOverdue(): void {
    this.#isOverdue = true;
    this.#writer.log.error(
      { session: this.uid, ...this.waiting },
      "a session cannot be recorded: the database has not stored its entries for too long",
    );
    if (this.#isFinishing) this.#shrink();
    else this.#onRecordFailure?.();
    this.#wake();
  }

  /** Discards the waiting output of an ended session if the waiting entries of all sessions use too much memory. */
  #shrink(): void {
    if (!this.#isOverdue || !this.#writer.isCrowded) return;
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ kind }) => kind !== "output");
    for (const entry of waiting) {
      if (entry.kind !== "output") continue;
      this.#count(-1, -weightOf(entry));
      this.#lose(entry.seat, Buffer.byteLength(entry.text), entry.size, entry.at);
    }
  }

  /**
   * Adds lost data to the gap of a seat. The gap is written after the outage.
   * @param from earliest time at which the data can have arrived
   */
  #lose(seat: number, bytes: number, size?: OutputEntry["size"], from = new Date()): void {
    const isNew = !this.#gaps.has(seat) && this.#gaps.size < GAPS;
    const gap = isNew ? newGap(seat, from) : (this.#gaps.get(seat) ?? [...this.#gaps.values()][0]);
    if (gap === undefined) return;
    gap.to = new Date();
    gap.entries += 1;
    gap.bytes += bytes;
    if (gap.seat === seat) gap.size ??= size;
    this.#writer.countLost({ gaps: isNew ? 1 : 0, bytes });
    if (!isNew) return;
    this.#gaps.set(seat, gap);
    this.#add(gap);
  }

  #wake(): void {
    this.#notFull.resolve();
    this.#notFull = Promise.withResolvers();
    this.#idle.resolve();
    this.#idle = Promise.withResolvers();
  }

  #removeLast(last: SessionEntry): void {
    this.#waiting.pop();
    this.#count(-1, -weightOf(last));
  }

  /** Removes entries that need no further write. */
  #drop(entries: readonly SessionEntry[]): void {
    this.#done += entries.length;
    this.#taken = [];
    this.#count(-entries.length, -weightOfAll(entries));
    for (const entry of entries) {
      if (entry.kind !== "gap") continue;
      const { seat, from, to, entries: lost, bytes } = entry;
      const facts = { session: this.uid, seat, from, to, entries: lost, bytes };
      this.#writer.log.warn(facts, "the recording of a session has a gap");
    }
  }

  #count(entries: number, weight: number): void {
    this.#weight += weight;
    this.#writer.count(entries, weight);
  }

  #add(entry: SessionEntry): void {
    this.#waiting.push(entry);
    this.#count(1, weightOf(entry));
    // Write the entry `authenticated` immediately, because a session must be listed as active as soon as its client is
    // logged in.
    if (this.#hasBegun) this.#writer.add(this, this.isUrgent || entry.kind === "authenticated");
  }
}

const newGap = (seat: number, from: Date): OpenGap => ({
  kind: "gap",
  seat,
  from,
  to: from,
  entries: 0,
  bytes: 0,
  size: undefined,
});

const isSame = (one: TerminalSize, other: TerminalSize): boolean =>
  one.width === other.width && one.height === other.height;
