import { StringDecoder } from "node:string_decoder";
import type { sessions } from "@gatehouse-access/sdk/contract";
import type { FastifyBaseLogger } from "fastify";
import type { z } from "zod";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import { changeSession } from "../../features/sessions/changeSession.ts";
import { storeEvent } from "../../features/sessions/entry.ts";
import { appendRecord } from "../../features/sessions/records.ts";
import type { Services } from "../../services.ts";

/** Size of a terminal in characters. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

type EventData = z.output<typeof sessions.sessionEvent>["data"];

/** Characters of a recorded chunk at most. */
const CHUNK = 16_000;
/** How long output is collected before it is written, in milliseconds. */
const COLLECTING = 250;
/** Characters that may wait to be written; then the output itself waits. */
const CONGESTED = 1024 * 1024;

interface Seat {
  readonly decoder: StringDecoder;
  text: string;
  size: TerminalSize;
}

/**
 * Writes down what happens in a session, one thing after the other. What cannot be written is left out, and the login
 * goes on: the operator's log says why.
 */
export class SessionLedger {
  readonly uid: string;
  readonly #services: Services;
  readonly #log: () => FastifyBaseLogger;
  readonly #seats = new Map<number, Seat>();
  /** Refusals logged so far: a client may cause the same one without end. */
  readonly #logged = new Set<string>();
  #queue: Promise<void> = Promise.resolve();
  #recording: boolean;
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;
  #drained = Promise.withResolvers<void>();

  /** @param recording whether output is to be recorded */
  constructor(services: Services, uid: string, recording: boolean, log: () => FastifyBaseLogger) {
    this.#services = services;
    this.uid = uid;
    this.#recording = recording;
    this.#log = log;
  }

  /** True while output is recorded: until the recording has reached its limit. */
  get recording(): boolean {
    return this.#recording;
  }

  /** The device has let the login in. */
  authenticated(): void {
    this.#enqueue(() => changeSession(this.#services, { uid: this.uid }, { authenticated: true }));
  }

  /** What the session is, once its client has said what it wants. */
  describe(what: { readonly type: string; readonly term?: string }): void {
    this.#enqueue(() => changeSession(this.#services, { uid: this.uid }, what));
  }

  /** Something has happened on a seat. */
  event(seat: number, type: string, data: EventData): void {
    const timestamp = this.#services.now().toISOString();
    this.#enqueue(() => storeEvent(this.#services, this.uid, { type, seat, data, timestamp }));
  }

  /**
   * Records output of a seat.
   * @returns settled once there is room for more
   */
  async record(seat: number, output: Buffer, size: TerminalSize): Promise<void> {
    if (!this.#recording) return;
    let open = this.#seats.get(seat);
    if (open === undefined) {
      open = { decoder: new StringDecoder("utf8"), text: "", size };
      this.#seats.set(seat, open);
    }
    if (open.size.width !== size.width || open.size.height !== size.height) this.#flush();
    open.size = size;
    const text = open.decoder.write(output);
    open.text += text;
    this.#waiting += text.length;
    if (open.text.length >= CHUNK) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), COLLECTING).unref();
    if (this.#waiting > CONGESTED) await this.#drained.promise;
  }

  /** Writes what waits, and settles once it is written. */
  async finish(): Promise<void> {
    this.#flush();
    await this.#queue;
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [seat, open] of this.#seats) {
      const { text, size } = open;
      open.text = "";
      for (let start = 0; start < text.length; start += CHUNK) {
        const message = text.slice(start, start + CHUNK);
        this.#enqueue(() => this.#append(seat, message, size));
      }
    }
  }

  async #append(seat: number, message: string, size: TerminalSize): Promise<void> {
    const { uid } = this;
    try {
      if (this.#recording) await appendRecord(this.#services, { uid }, seat, { uid, seat, message, ...size });
    } catch (error) {
      this.#recording = false;
      throw error;
    } finally {
      this.#waiting -= message.length;
      if (this.#waiting <= CONGESTED) {
        this.#drained.resolve();
        this.#drained = Promise.withResolvers();
      }
    }
  }

  #enqueue(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error: unknown) => this.#refused(error));
  }

  #refused(error: unknown): void {
    const { message } = error as Error;
    if (this.#logged.has(message)) return;
    this.#logged.add(message);
    // Of a session that was deleted with its device, nothing can be kept.
    if (error instanceof ForbiddenError || error instanceof NotFoundError) {
      this.#log().warn({ session: this.uid, reason: message }, "something of a session is not kept");
    } else {
      this.#log().error({ session: this.uid, err: error }, "something of a session could not be kept");
    }
  }
}
