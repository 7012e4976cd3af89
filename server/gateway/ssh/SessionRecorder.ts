import { StringDecoder } from "node:string_decoder";
import { setTimeout, setImmediate as turn } from "node:timers/promises";
import type { Logger } from "pino";
import type { OutputStream, SessionEntries, SessionEntry } from "../../features/sessions/addEntries.ts";
import type { EventData, TerminalSize } from "../protocol.ts";

/** How long entries are collected before they are written, in milliseconds. */
const COLLECTING = 200;
/** Characters and entries with which a write begins at once, and which it has at most. */
const BATCH = { characters: 64 * 1024, entries: 256 };
/** Characters of one recorded chunk at most. */
const CHUNK = 16_000;
/** What a session may have waiting: then its client and its device wait. */
const WAITING = { characters: 256 * 1024, entries: 256 };
/** Characters that an entry counts beside its text. */
const OVERHEAD = 128;

/** Writes entries of sessions, and names the sessions whose output is recorded no longer. */
type WriteEntries = (sessions: readonly SessionEntries[]) => Promise<readonly string[]>;

/**
 * Writes what happens in the sessions of this process, one batch after the other. It leaves the database to others for
 * as long as each write took, and takes a part of each session in turn, so that no session keeps others waiting.
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

  /** @param recording whether output is recorded */
  open(uid: string, recording: boolean): SessionRecorder {
    return new SessionRecorder(uid, recording, this);
  }

  /** What waits to be written, of all sessions. */
  get waiting(): { readonly entries: number; readonly characters: number } {
    let [entries, characters] = [0, 0];
    for (const session of this.#dirty) {
      entries += session.waiting.entries;
      characters += session.waiting.characters;
    }
    return { entries, characters };
  }

  /** A session has something to write. */
  add(session: SessionRecorder, urgent: boolean): void {
    this.#dirty.add(session);
    if (urgent) this.#early.resolve();
    if (!this.#running) void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    // What comes after a pause is written at once: only what follows it is collected.
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

  /** @returns true if there was more than a batch has */
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
      // The login goes on: what cannot be kept is lost, and the operator learns of it.
      this.#log.error({ err: error, sessions: batch.length }, "something of sessions could not be kept");
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

/** What happens in a session, in its order, until it is written. */
export class SessionRecorder {
  readonly uid: string;
  readonly #writer: SessionWriter;
  readonly #decoders = new Map<string, StringDecoder>();
  #recording: boolean;
  #waiting: SessionEntry[] = [];
  #weight = 0;
  #writing = false;
  #hasBegun = false;
  #room = Promise.withResolvers<void>();
  #idle = Promise.withResolvers<void>();

  constructor(uid: string, recording: boolean, writer: SessionWriter) {
    this.uid = uid;
    this.#recording = recording;
    this.#writer = writer;
  }

  /** True while output is recorded: until the recording has reached its limit. */
  get recording(): boolean {
    return this.#recording;
  }

  get isDirty(): boolean {
    return this.#waiting.length > 0;
  }

  /** What waits to be written. */
  get waiting(): { readonly entries: number; readonly characters: number } {
    return { entries: this.#waiting.length, characters: this.#weight };
  }

  /** True if there is enough to write for a batch. */
  get isUrgent(): boolean {
    return this.#weight >= BATCH.characters || this.#waiting.length >= BATCH.entries / 2;
  }

  /** True if what causes entries must wait for {@link room}. */
  get isFull(): boolean {
    return this.#weight >= WAITING.characters || this.#waiting.length >= WAITING.entries;
  }

  /** Settles once there is room for more. */
  async room(): Promise<void> {
    while (this.isFull) await this.#room.promise;
  }

  /** The session is in the database: what has happened so far can be written. */
  begun(): void {
    this.#hasBegun = true;
    if (this.isDirty) this.#writer.add(this, true);
  }

  /** The device has let the login in. */
  authenticated(): void {
    this.#add({ kind: "authenticated" });
  }

  /** What the session is, once its client has said what it wants. */
  describe(type: string, term: string | undefined): void {
    this.#add({ kind: "described", type, ...(term && { term }) });
  }

  /** Something has happened on a seat. Of sizes that follow each other, the last one is kept. */
  event(seat: number, type: string, data: EventData): void {
    const last = this.#waiting.at(-1);
    if (type === "window-change" && last?.kind === "event" && last.type === type && last.seat === seat) {
      this.#remove(last);
    }
    this.#add({ kind: "event", seat, type, at: new Date(), data });
  }

  /**
   * Records output of a seat.
   * @param stream what the command has written to
   * @returns settled once there is room for more
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

  /** Settles once everything is written. Of a session that has never begun, nothing is. */
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

  /** Takes what is to be written next, of a size at most; one entry at least. */
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

  /** What was taken is written. @param silenced output is recorded no longer */
  written(silenced: boolean): void {
    this.#writing = false;
    if (silenced) this.#recording = false;
    this.#room.resolve();
    this.#room = Promise.withResolvers();
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
    // A session is listed as active as soon as its client is logged in.
    if (this.#hasBegun) this.#writer.add(this, this.isUrgent || entry.kind === "authenticated");
  }
}

const isSame = (one: TerminalSize, other: TerminalSize): boolean =>
  one.width === other.width && one.height === other.height;
