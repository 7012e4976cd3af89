import { Duplex } from "node:stream";
import { UnreachableError } from "../protocol.ts";
import type { TunnelLink } from "./Transport.ts";

// A yamux frame has a header of 12 bytes (big endian): version (1 byte), type (1), flags (2), stream id (4), length
// (4). The length field contains the length of the data after the header, or the value of a window update, ping or
// go-away.
const HEADER = 12;
const TYPE = { data: 0, windowUpdate: 1, ping: 2, goAway: 3 };
const FLAG = { syn: 1, ack: 2, fin: 4, rst: 8 };
/** Value of a go-away that reports a protocol violation. */
const PROTOCOL_ERROR = 1;
/** Window of a stream: maximum number of bytes that one side may send before the other side has read them. */
const WINDOW = 256 * 1024;
/**
 * Maximum number of data bytes in a sent frame. With short frames, the streams of a tunnel share the connection fairly.
 */
const FRAME_MAX = 64 * 1024;
/** Maximum number of open streams of a tunnel. */
const STREAMS_MAX = 1000;
/** Maximum number of bytes that an agent may still send on streams that the service has reset. */
const IGNORABLE_MAX = 16 * WINDOW;
/** Maximum value of a send window. Each window update adds to the window. */
const SEND_WINDOW_MAX = 2 ** 32 - 1;
/**
 * Number of frames without data that an agent may send for each stream. These frames do not count toward the limit of
 * the tunnel.
 */
const FRAMES_PER_STREAM = 4;
/**
 * Size, in bytes, from which a window update does not count as a frame without data. Agents send an update when they
 * have read half a window.
 */
const COUNTED_UPDATE = 4096;
/** Size of the blocks that hold data for a slow consumer, in bytes. */
const BLOCK = 16 * 1024;

function header(type: number, flags: number, id: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER);
  bytes.writeUInt16BE(type, 0);
  bytes.writeUInt16BE(flags, 2);
  bytes.writeUInt32BE(id, 4);
  bytes.writeUInt32BE(length, 8);
  return bytes;
}

// Yamux is implemented here because the maintained npm package works only with its own kind of streams. Together with
// multistream-select, that package would add 57 packages.

/**
 * The client side of yamux, protocol version 0: byte streams that share the connection of a tunnel. Only the service
 * opens streams. If an agent violates the protocol or a limit, its tunnel ends.
 */
export class Yamux {
  readonly #link: TunnelLink;
  readonly #streams = new Map<number, YamuxStream>();
  readonly #header = Buffer.alloc(HEADER);
  /** Number of received bytes of the current header. */
  #filled = 0;
  /** Number of data bytes of the current frame that have not arrived yet, and the stream that receives them. */
  #missing = 0;
  #target: YamuxStream | undefined;
  #nextId = 1;
  /** Number of frames without data that the agent may still send before they count toward the tunnel's limit. */
  #uncounted = 0;
  /** Number of bytes that the agent may still send on streams that the service has reset. */
  #ignorable = 0;
  #isBroken = false;

  constructor(link: TunnelLink) {
    this.#link = link;
  }

  /**
   * Opens a stream. When the agent ends its direction, the stream ends in both directions, because agents expect that.
   * @throws UnreachableError the tunnel has the maximum number of streams
   */
  open(): Duplex {
    if (this.#streams.size >= STREAMS_MAX) throw new UnreachableError("has too many open connections");
    const id = this.#nextId;
    this.#nextId += 2;
    this.#uncounted += FRAMES_PER_STREAM;
    const stream = new YamuxStream({
      send: (flags, data, sent) => this.#sendData(id, flags, data, sent),
      update: (flags, size) => this.#link.send(header(TYPE.windowUpdate, flags, id, size)),
      removed: (unread) => {
        if (this.#streams.delete(id)) this.#ignorable = Math.min(this.#ignorable + unread, IGNORABLE_MAX);
      },
    });
    this.#streams.set(id, stream);
    this.#link.send(header(TYPE.windowUpdate, FLAG.syn, id, 0));
    return stream;
  }

  /** Handles received bytes. A frame may arrive in any number of parts. */
  receive(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && !this.#isBroken) {
      const inData = this.#missing > 0;
      const part = rest.subarray(0, inData ? this.#missing : HEADER - this.#filled);
      rest = rest.subarray(part.length);
      if (inData) {
        this.#missing -= part.length;
        this.#target?.receive(part);
      } else {
        part.copy(this.#header, this.#filled);
        this.#filled += part.length;
        if (this.#filled < HEADER) return;
        this.#begin();
      }
      if (this.#missing > 0) continue;
      this.#filled = 0;
      this.#target?.receiveFlags(this.#header.readUInt16BE(2));
      this.#target = undefined;
    }
  }

  /** Closes all streams, because the tunnel is closed. */
  close(): void {
    this.#isBroken = true;
    for (const stream of this.#streams.values()) stream.destroy();
  }

  /** Handles the header of a frame. */
  #begin(): void {
    const [version, type] = this.#header;
    const flags = this.#header.readUInt16BE(2);
    const id = this.#header.readUInt32BE(4);
    const length = this.#header.readUInt32BE(8);
    if (version !== 0) this.#fail("an unknown version of yamux");
    else if (type === TYPE.ping) this.#answerPing(flags, length);
    else if (type === TYPE.data || type === TYPE.windowUpdate) this.#beginStreamFrame(type, id, length);
    else this.#fail(type === TYPE.goAway ? "a go-away" : "a frame of an unknown type");
  }

  #answerPing(flags: number, value: number): void {
    if (this.#count() && flags & FLAG.syn) this.#link.send(header(TYPE.ping, FLAG.ack, 0, value));
  }

  #beginStreamFrame(type: number, id: number, length: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined && (id % 2 === 0 || id >= this.#nextId)) {
      this.#fail("a frame of a stream that the service has not opened");
      return;
    }
    this.#target = stream;
    const isCounted = type === TYPE.data ? length === 0 : stream === undefined || length < COUNTED_UPDATE;
    if (isCounted && !this.#count()) return;
    if (type === TYPE.windowUpdate) {
      if (stream?.grow(length) === false) this.#fail("a window that is too large");
    } else if (length > (stream?.receivable ?? this.#ignorable)) {
      this.#fail("more data than the window of the stream allows");
    } else {
      this.#missing = length;
      if (stream === undefined) this.#ignorable -= length;
    }
  }

  /**
   * Counts a frame without data. Returns false if the agent has sent too many such frames. All further frames are then
   * ignored.
   */
  #count(): boolean {
    if (this.#uncounted > 0) this.#uncounted -= 1;
    else if (!this.#link.count(HEADER, 1)) this.#isBroken = true;
    return !this.#isBroken;
  }

  #sendData(id: number, flags: number, data: Buffer, sent: Sent): void {
    this.#link.send(Buffer.concat([header(TYPE.data, flags, id, data.length), data]), sent);
  }

  #fail(violation: string): void {
    this.#isBroken = true;
    this.#target = undefined;
    this.#link.send(header(TYPE.goAway, 0, 0, PROTOCOL_ERROR));
    this.#link.fail(violation);
  }
}

/** Copies short data, because a part of a buffer would keep the whole buffer in memory. */
const compact = (data: Buffer): Buffer => (data.length < BLOCK / 4 ? Buffer.from(data) : data);

type Sent = (error?: Error | null) => void;

/** The connection between a stream and its tunnel. */
interface StreamLink {
  send(flags: number, data: Buffer, sent: Sent): void;
  update(flags: number, size: number): void;
  /**
   * Called when the stream has ended.
   * @param unread number of bytes that the agent may still send on this stream
   */
  removed(unread: number): void;
}

class YamuxStream extends Duplex {
  readonly #link: StreamLink;
  /** Number of bytes that the agent may send now. */
  receivable = WINDOW;
  #sendable = WINDOW;
  /** Continues the write that is waiting for a window update. */
  #continue: (() => void) | undefined;
  /** Whether the consumer is waiting for data. If not, received data is held in blocks. */
  #isWanted = false;
  /**
   * Blocks of held data. A frame can contain a single byte, so a separate buffer for each frame would use much more
   * memory than the data.
   */
  readonly #held: Buffer[] = [];
  /** Number of bytes in the last block. */
  #used = 0;
  #hasEnded = false;
  #hasFinished = false;

  constructor(link: StreamLink) {
    super({ allowHalfOpen: false, readableHighWaterMark: BLOCK });
    this.#link = link;
  }

  receive(data: Buffer): void {
    this.receivable -= data.length;
    if (this.#isWanted) {
      this.#isWanted = false;
      this.push(compact(data));
    } else if (!this.destroyed) this.#hold(data);
  }

  receiveFlags(flags: number): void {
    if (!(flags & (FLAG.fin | FLAG.rst))) return;
    this.#hasEnded = true;
    // After the end, agents read nothing and send no window update. Resume the waiting write, so that it does not wait
    // forever.
    this.#resume();
    // The agent may send no more data after the end.
    this.receivable = 0;
    if (flags & FLAG.rst) {
      this.#hasFinished = true;
      this.destroy();
    } else if (this.#held.length === 0) this.push(null);
  }

  /** Handles a window update. Returns false if the window is then too large. */
  grow(size: number): boolean {
    this.#sendable += size;
    if (this.#sendable > SEND_WINDOW_MAX) return false;
    this.#resume();
    return true;
  }

  #resume(): void {
    const next = this.#continue;
    this.#continue = undefined;
    next?.();
  }

  override _read(): void {
    const block = this.#held.shift();
    if (block !== undefined)
      this.push(this.#held.length === 0 ? compact(block.subarray(0, this.#used)) : block);
    else this.#isWanted = true;
    if (!this.#hasEnded) this.#grant();
    else if (block !== undefined && this.#held.length === 0) this.push(null);
  }

  override _write(data: Buffer, encoding: BufferEncoding, done: Sent): void {
    if (this.#hasEnded) {
      done();
      return;
    }
    const part = data.subarray(0, Math.min(this.#sendable, FRAME_MAX));
    if (part.length === 0 && data.length > 0) {
      this.#continue = () => this._write(data, encoding, done);
      return;
    }
    this.#sendable -= part.length;
    this.#link.send(0, part, (error) => {
      if (error || this.destroyed || part.length === data.length) done(error);
      else this._write(data.subarray(part.length), encoding, done);
    });
  }

  override _final(done: Sent): void {
    this.#hasFinished = true;
    this.#link.update(FLAG.fin, 0);
    done();
  }

  override _destroy(error: Error | null, done: Sent): void {
    if (!(this.#hasEnded && this.#hasFinished)) this.#link.update(FLAG.rst, 0);
    this.#link.removed(this.receivable);
    this.#held.length = 0;
    done(error);
  }

  /**
   * Permits the agent to send as much data as the consumer has read, if the consumer has read at least half a window.
   * Data outside the blocks is treated as read, because Node calls `_read` only when its own buffer has space.
   */
  #grant(): void {
    const held = this.#held.length === 0 ? 0 : (this.#held.length - 1) * BLOCK + this.#used;
    const read = WINDOW - held - this.receivable;
    if (read < WINDOW / 2) return;
    this.receivable += read;
    this.#link.update(0, read);
  }

  #hold(data: Buffer): void {
    let rest = data;
    while (rest.length > 0) {
      if (this.#held.length === 0 || this.#used === BLOCK) {
        this.#held.push(Buffer.allocUnsafeSlow(BLOCK));
        this.#used = 0;
      }
      const copied = rest.copy(this.#held.at(-1) as Buffer, this.#used);
      this.#used += copied;
      rest = rest.subarray(copied);
    }
  }
}
