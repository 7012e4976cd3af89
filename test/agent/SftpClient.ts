import type { Duplex } from "node:stream";

/** A field of a packet: a 32-bit number, a 64-bit number, or a string. */
type Field = number | bigint | Buffer | string;

/** A response of the server: its type, the id of the request, and the remaining bytes. */
export interface SftpAnswer {
  readonly type: number;
  readonly id: number;
  readonly body: Buffer;
}

export const REQUEST = {
  OPEN: 3,
  CLOSE: 4,
  READ: 5,
  WRITE: 6,
  LSTAT: 7,
  FSTAT: 8,
  SETSTAT: 9,
  OPENDIR: 11,
  READDIR: 12,
  REMOVE: 13,
  REALPATH: 16,
  STAT: 17,
  RENAME: 18,
  READLINK: 19,
  SYMLINK: 20,
  EXTENDED: 200,
} as const;

/** Encodes a packet of SFTP (draft-ietf-secsh-filexfer-02), without its length. */
function packet(type: number, fields: readonly Field[]): Buffer {
  const parts: Buffer[] = [Buffer.of(type)];
  for (const field of fields) {
    const head = Buffer.alloc(typeof field === "bigint" ? 8 : 4);
    if (typeof field === "bigint") head.writeBigUInt64BE(field);
    else head.writeUInt32BE(typeof field === "number" ? field : Buffer.byteLength(field));
    parts.push(head);
    if (typeof field === "object" || typeof field === "string") parts.push(Buffer.from(field));
  }
  return Buffer.concat(parts);
}

function withLength(body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length);
  return Buffer.concat([length, body]);
}

/** An SFTP client that can send many requests without waiting for responses, and can split their bytes anywhere. */
export class SftpClient {
  readonly #stream: Duplex;
  readonly #answers: AsyncGenerator<Buffer>;
  #lastId = 0;

  constructor(stream: Duplex) {
    this.#stream = stream;
    this.#answers = answersOf(stream);
  }

  /**
   * Sends SFTP's INIT packet.
   * @returns the server's SFTP extensions
   */
  async begin(): Promise<readonly string[]> {
    this.#stream.write(withLength(packet(1, [3])));
    const { value } = await this.#answers.next();
    const namesAndVersions = stringsOf((value as Buffer).subarray(5)).map(String);
    return namesAndVersions.filter((_, index) => index % 2 === 0);
  }

  /** Sends raw bytes. */
  send(bytes: Buffer): void {
    this.#stream.write(bytes);
  }

  /** Encodes a request. */
  request(type: number, ...fields: readonly Field[]): Buffer {
    this.#lastId += 1;
    return withLength(packet(type, [this.#lastId, ...fields]));
  }

  async next(): Promise<SftpAnswer> {
    const { value, done } = await this.#answers.next();
    if (done) throw new Error("the server has ended the connection");
    const bytes = value as Buffer;
    return { type: bytes.readUInt8(), id: bytes.readUInt32BE(1), body: bytes.subarray(5) };
  }

  /** Sends one request and returns the response. */
  async exchange(type: number, ...fields: readonly Field[]): Promise<SftpAnswer> {
    this.send(this.request(type, ...fields));
    return this.next();
  }

  /** Opens a file or folder and returns its handle. */
  async open(type: number, ...fields: readonly Field[]): Promise<Buffer> {
    const { type: answer, body } = await this.exchange(type, ...fields);
    if (answer !== 102) throw new Error(`not opened: status ${body.readUInt32BE()}`);
    return stringsOf(body)[0] ?? Buffer.of();
  }

  end(): void {
    this.#stream.end();
  }
}

/** Decodes consecutive SFTP strings, each of which begins with its length in four bytes. */
export function stringsOf(bytes: Buffer): Buffer[] {
  const strings: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + bytes.readUInt32BE(at);
    strings.push(bytes.subarray(at + 4, end));
    at = end;
  }
  return strings;
}

/** Returns the entries of a response to READDIR or REALPATH. `shown` is the entry's line in a directory listing. */
export function namesOf({ body }: SftpAnswer): { readonly name: Buffer; readonly shown: string }[] {
  const names = [];
  let at = 4;
  const string = () => {
    const start = at + 4;
    at = start + body.readUInt32BE(at);
    return body.subarray(start, at);
  };
  for (let left = body.readUInt32BE(); left > 0; left -= 1) {
    names.push({ name: string(), shown: string().toString() });
    const flags = body.readUInt32BE(at);
    at += 4 + (flags & 1 ? 8 : 0) + (flags & 2 ? 8 : 0) + (flags & 4 ? 4 : 0) + (flags & 8 ? 8 : 0);
  }
  return names;
}

async function* answersOf(stream: Duplex): AsyncGenerator<Buffer> {
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of stream) {
    bytes = Buffer.concat([bytes, chunk as Buffer]);
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32BE()) {
      const end = 4 + bytes.readUInt32BE();
      yield bytes.subarray(4, end);
      bytes = bytes.subarray(end);
    }
  }
}
