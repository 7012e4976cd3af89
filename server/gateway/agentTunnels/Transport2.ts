import { on } from "node:events";
import type { Duplex } from "node:stream";
import { UnreachableError } from "../protocol.ts";
import { ANSWER_TIMEOUT, type Transport, type TunnelLink } from "./Transport.ts";
import { Yamux } from "./Yamux.ts";

/** The protocols that the service selects with multistream-select 1.0.0. */
const PROTOCOLS = ["/multistream/1.0.0", "/ssh/open/1.0.0"];
/**
 * Maximum length of a message, in bytes. No known answer is longer, and the length prefix of a longer message would
 * need more than one byte.
 */
const MESSAGE_MAX = 127;

/** Transport 2: the tunnel carries one yamux stream for each connection. */
export class Transport2 implements Transport {
  readonly version = 2;
  readonly #yamux: Yamux;

  constructor(link: TunnelLink) {
    this.#yamux = new Yamux(link);
  }

  receive(bytes: Buffer): void {
    this.#yamux.receive(bytes);
  }

  keepAlive(): void {}

  async connect(session: string): Promise<Duplex> {
    const stream = this.#yamux.open();
    const ended = new AbortController();
    const fail = (reason: string) => ended.abort(new UnreachableError(reason));
    const timer = setTimeout(() => fail("did not answer in time"), ANSWER_TIMEOUT);
    const hungUp = () => fail("hung up");
    // Errors are ignored, because the event `close` follows every error.
    stream.on("error", () => {}).on("close", hungUp);
    try {
      await openSsh(stream, session, ended.signal);
      return stream;
    } catch (error) {
      stream.destroy();
      throw ended.signal.aborted ? ended.signal.reason : error;
    } finally {
      clearTimeout(timer);
      stream.off("close", hungUp);
    }
  }

  closed(): void {
    this.#yamux.close();
  }
}

/** Selects SSH on a new stream, and waits until the agent has sent its first SSH bytes. */
async function openSsh(stream: Duplex, session: string, signal: AbortSignal): Promise<void> {
  // Use one listener for all data. A new listener for each read would be called immediately while only a part of a
  // message has arrived.
  const readable = on(stream, "readable", { signal });
  const read = async (size: number): Promise<Buffer> => {
    for (;;) {
      const bytes: Buffer | null = stream.read(size);
      if (bytes?.length === size) return bytes;
      await readable.next();
    }
  };
  try {
    stream.write(Buffer.concat(PROTOCOLS.map(message)));
    for (const protocol of PROTOCOLS) {
      const [size = 0] = await read(1);
      // Reject the size 0, because a read of 0 bytes would never complete.
      if (size === 0 || size > MESSAGE_MAX || !(await read(size)).equals(message(protocol).subarray(1))) {
        throw new UnreachableError("does not accept SSH connections");
      }
    }
    stream.write(`${JSON.stringify({ id: session })}\n`);
    // Agents lose data that arrives together with the JSON. Wait for the agent's first SSH bytes, which prove that the
    // agent has read the JSON.
    while (stream.readableLength === 0) {
      // Without this call, the stream does not report its end.
      stream.read(0);
      await readable.next();
    }
  } finally {
    await readable.return?.();
  }
}

/** Encodes a multistream-select message: the length, the text and a line feed. */
function message(text: string): Buffer {
  return Buffer.from(`${String.fromCharCode(text.length + 1)}${text}\n`);
}
