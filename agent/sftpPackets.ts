import type { Stats } from "node:fs";

/** Maximum size of an SFTP packet in bytes, as in OpenSSH. */
export const PACKET_MAX = 256 * 1024;
/** Size of a packet's length field, in bytes. */
const LENGTH = 4;

/** Packet types (draft-ietf-secsh-filexfer-02, section 3). */
export const TYPE = {
  INIT: 1,
  VERSION: 2,
  OPEN: 3,
  CLOSE: 4,
  READ: 5,
  WRITE: 6,
  LSTAT: 7,
  FSTAT: 8,
  SETSTAT: 9,
  FSETSTAT: 10,
  OPENDIR: 11,
  READDIR: 12,
  REMOVE: 13,
  MKDIR: 14,
  RMDIR: 15,
  REALPATH: 16,
  STAT: 17,
  RENAME: 18,
  READLINK: 19,
  SYMLINK: 20,
  STATUS: 101,
  HANDLE: 102,
  DATA: 103,
  NAME: 104,
  ATTRS: 105,
  EXTENDED: 200,
  EXTENDED_REPLY: 201,
} as const;

/**
 * Flags of an attribute list in a packet. Each flag marks an attribute that the list contains
 * (draft-ietf-secsh-filexfer-02, section 5).
 */
const HAS = { SIZE: 1, OWNER: 2, MODE: 4, TIMES: 8 } as const;

/** A field of a packet: a 32-bit number, a 64-bit number, or a string. */
export type Field = number | bigint | Buffer;

export interface Answer {
  readonly type: number;
  readonly fields: readonly Field[];
}

export interface Attributes {
  readonly size?: number;
  readonly owner?: { readonly uid: number; readonly gid: number };
  readonly mode?: number;
  /** Times of the last access and the last change, as Unix time in seconds. */
  readonly times?: { readonly accessed: number; readonly modified: number };
}

/** An error for a malformed packet from the client. The server cannot parse any data after this packet. */
export class ProtocolError extends Error {}

/** Reads the fields of a packet. Each method throws a {@link ProtocolError} if the packet is too short. */
export class Packet {
  readonly type: number;
  readonly #bytes: Buffer;
  #at = 1;

  constructor(bytes: Buffer) {
    this.type = bytes.readUInt8();
    this.#bytes = bytes;
  }

  #take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new ProtocolError("an SFTP packet is too short");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  number(): number {
    return this.#take(4).readUInt32BE();
  }

  /** Reads a 64-bit number. Numbers above 2^53 are rounded. */
  long(): number {
    return Number(this.#take(8).readBigUInt64BE());
  }

  string(): Buffer {
    return this.#take(this.number());
  }

  attributes(): Attributes {
    const flags = this.number();
    const has = (flag: number) => (flags & flag) !== 0;
    return {
      ...(has(HAS.SIZE) && { size: this.long() }),
      ...(has(HAS.OWNER) && { owner: { uid: this.number(), gid: this.number() } }),
      ...(has(HAS.MODE) && { mode: this.number() & 0o7777 }),
      ...(has(HAS.TIMES) && { times: { accessed: this.number(), modified: this.number() } }),
    };
  }
}

/**
 * Yields the packets of a stream, without their length fields.
 * @throws ProtocolError a packet is longer than {@link PACKET_MAX}
 */
export async function* packetsOf(stream: AsyncIterable<Buffer>): AsyncGenerator<Packet> {
  let chunks: Buffer[] = [];
  let size = 0;
  let needed = LENGTH;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size < needed) continue;
    let left = Buffer.concat(chunks);
    needed = LENGTH;
    while (left.length >= needed) {
      const length = left.readUInt32BE();
      if (length < 1 || length > PACKET_MAX) throw new ProtocolError("the length of an SFTP packet is wrong");
      needed = LENGTH + length;
      if (left.length < needed) break;
      yield new Packet(left.subarray(LENGTH, needed));
      left = left.subarray(needed);
      needed = LENGTH;
    }
    chunks = [left];
    size = left.length;
  }
}

export function encode({ type, fields }: Answer): Buffer {
  const parts = fields.map((field) => {
    if (typeof field === "object") return Buffer.concat([encodeNumber(field.length), field]);
    return typeof field === "number" ? encodeNumber(field) : encodeLong(field);
  });
  const body = Buffer.concat([Buffer.of(type), ...parts]);
  return Buffer.concat([encodeNumber(body.length), body]);
}

export function encodeNumber(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

function encodeLong(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);

export const attributeFields = ({ mode, uid, gid, size, atimeMs, mtimeMs }: Stats): Field[] => [
  HAS.SIZE | HAS.OWNER | HAS.MODE | HAS.TIMES,
  BigInt(size),
  uid,
  gid,
  mode,
  seconds(atimeMs),
  seconds(mtimeMs),
];
