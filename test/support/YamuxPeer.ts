import { Duplex } from "node:stream";

/** A frame of yamux. `length` is the value of a window update, ping or go-away. */
export interface YamuxFrame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly length: number;
  readonly data: Buffer;
}

export const [DATA, WINDOW_UPDATE, PING, GO_AWAY] = [0, 1, 2, 3];
export const [SYN, ACK, FIN, RST] = [1, 2, 4, 8];

/** Encodes a frame. The length of a data frame is the length of its data, unless the frame states another length. */
export function yamuxFrame({ version = 0, type = DATA, flags = 0, id = 0, ...rest }: TestFrame): Buffer {
  const { data = Buffer.alloc(0), length = data.length } = rest;
  const header = Buffer.alloc(12);
  header.writeUInt8(version, 0);
  header.writeUInt8(type, 1);
  header.writeUInt16BE(flags, 2);
  header.writeUInt32BE(id, 4);
  header.writeUInt32BE(length, 8);
  return Buffer.concat([header, data]);
}

export type TestFrame = Partial<YamuxFrame> & { readonly version?: number };

/** Splits received bytes into frames. */
export class YamuxParser {
  #rest = Buffer.alloc(0);

  add(bytes: Buffer): YamuxFrame[] {
    const frames: YamuxFrame[] = [];
    let rest = Buffer.concat([this.#rest, bytes]);
    while (rest.length >= 12) {
      const [, type = 0] = rest;
      const length = rest.readUInt32BE(8);
      const end = 12 + (type === DATA ? length : 0);
      if (rest.length < end) break;
      const data = rest.subarray(12, end);
      frames.push({ type, flags: rest.readUInt16BE(2), id: rest.readUInt32BE(4), length, data });
      rest = rest.subarray(end);
    }
    this.#rest = rest;
    return frames;
  }
}

const WINDOW = 256 * 1024;

interface OpenStream {
  readonly stream: Duplex;
  /** Number of bytes that the agent may send now. */
  window: number;
  /** Number of received bytes that the agent has not granted again. */
  received: number;
  /** Continues the write that waits for the window. */
  next: (() => void) | undefined;
}

/** The agent's side of transport 2, without limits: accepts streams, and grants the service any amount of data. */
export class YamuxPeer {
  /** The received frames. */
  readonly frames: YamuxFrame[] = [];
  readonly #send: (bytes: Buffer) => void;
  readonly #accept: (stream: Duplex, id: number) => void;
  readonly #parser = new YamuxParser();
  readonly #streams = new Map<number, OpenStream>();

  /** @param accept called with each stream that the service opens */
  constructor(send: (bytes: Buffer) => void, accept: (stream: Duplex, id: number) => void) {
    this.#send = send;
    this.#accept = accept;
  }

  send(frame: TestFrame): void {
    this.#send(yamuxFrame(frame));
  }

  receive(bytes: Buffer): void {
    for (const frame of this.#parser.add(bytes)) {
      this.frames.push({ ...frame, data: Buffer.from(frame.data) });
      const { type, flags, id, length, data } = frame;
      if (type === PING && flags & SYN) this.send({ type: PING, flags: ACK, length });
      if (flags & SYN && type !== PING) this.#open(id);
      const open = this.#streams.get(id);
      if (open === undefined) continue;
      if (type === WINDOW_UPDATE) {
        open.window += length;
        const { next } = open;
        // Each write continues once. A later window update must not send its data again.
        open.next = undefined;
        next?.();
      } else if (data.length > 0) {
        open.stream.push(Buffer.from(data));
        // Real agents also grant data in halves of the window.
        open.received += data.length;
        if (open.received >= WINDOW / 2) {
          this.send({ type: WINDOW_UPDATE, id, length: open.received });
          open.received = 0;
        }
      }
      if (flags & FIN) open.stream.push(null);
      if (flags & RST) open.stream.destroy();
    }
  }

  #open(id: number): void {
    const write = (data: Buffer, done: () => void) => {
      const part = data.subarray(0, entry.window);
      entry.window -= part.length;
      if (part.length > 0) this.send({ id, data: part });
      if (part.length === data.length) done();
      else entry.next = () => write(data.subarray(part.length), done);
    };
    const stream = new Duplex({
      read: () => {},
      write: (data: Buffer, _encoding, done) => write(data, done),
      final: (done) => {
        this.send({ type: WINDOW_UPDATE, flags: FIN, id });
        done();
      },
      destroy: (error, done) => {
        this.#streams.delete(id);
        done(error);
      },
    });
    stream.on("error", () => {});
    const entry: OpenStream = { stream, window: WINDOW, received: 0, next: undefined };
    this.#streams.set(id, entry);
    this.send({ type: WINDOW_UPDATE, flags: ACK, id });
    this.#accept(stream, id);
  }
}

/**
 * Answers multistream-select on a new stream like an agent, and reads the JSON that follows.
 * @returns the id of the session
 */
export async function acceptSsh(stream: Duplex): Promise<string> {
  let text = "";
  const read = async (end: () => boolean) => {
    while (!end()) {
      const bytes: Buffer | null = stream.read();
      if (bytes === null) await new Promise((resolve) => void stream.once("readable", resolve));
      else text += bytes.toString("latin1");
    }
  };
  const selected = "\x13/multistream/1.0.0\n\x10/ssh/open/1.0.0\n";
  await read(() => text.length >= selected.length);
  if (text !== selected) throw new Error(`the service selected ${JSON.stringify(text)}`);
  stream.write(selected);
  text = "";
  await read(() => text.endsWith("\n"));
  return (JSON.parse(text) as { readonly id: string }).id;
}
