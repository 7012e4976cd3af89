import { type Duplex, Writable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { FastifyBaseLogger } from "fastify";
import type { RawData, WebSocket } from "ws";
import { z } from "zod";
import {
  boundFrames,
  closeWebSocket,
  WebSocketHandler,
  webSocketHandler,
} from "../../http/listener/webSockets.ts";
import type { Gateway } from "../Gateway.ts";
import type { GatewayProcess } from "../GatewayProcess.ts";
import type { RelayTicket, RequestedTerminal, TerminalSize } from "../protocol.ts";

/**
 * Interval between pings to a browser, in milliseconds. If a browser has not answered the last ping, the service
 * disconnects it.
 */
const PING = 30_000;
/**
 * Maximum number of frames that a browser may send in 30 seconds. Each key press is one frame, and pasted text is a few
 * frames.
 */
const FRAMES = 20_000;
/** Time, in milliseconds, during which the size changes of a terminal are combined. */
const RESIZING = 50;
/** The message that a browser shows for a refused login. It is the same for every reason. */
const DENIED = "Permission denied";

/** A message from a browser: input, as bytes or base64, or a new size of the terminal. */
const fromBrowser = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal(1), data: z.union([z.array(z.int().min(0).max(255)), z.base64()]) }),
  z.object({
    kind: z.literal(2),
    data: z.object({ cols: z.int().min(1).max(1000), rows: z.int().min(1).max(1000) }),
  }),
]);

/** The WebSocket of a terminal in a browser. Passes bytes between the browser and the gateway process. */
export class WebTerminalSocket extends WebSocketHandler {
  readonly #process: GatewayProcess;
  readonly #log: FastifyBaseLogger;
  readonly #requested: RequestedTerminal;
  #ticket: RelayTicket | undefined;
  #size: TerminalSize | undefined;
  #resizing: NodeJS.Timeout | undefined;
  #stream: Duplex | undefined;

  constructor({ process, log }: Gateway, requested: RequestedTerminal) {
    super();
    this.#process = process;
    this.#log = log();
    this.#requested = requested;
  }

  /**
   * Returns the handler of a WebSocket for a refused terminal. The handler shows the reason, and then closes the
   * WebSocket.
   */
  static refused(reason: string): WebSocketHandler {
    return webSocketHandler((socket) => {
      socket.on("error", () => {});
      leave(socket, reason);
    });
  }

  begin(socket: WebSocket): void {
    socket.on("error", () => {});
    socket.on("message", (data) => this.#receive(socket, data));
    // Pause reading until the shell is open, so that earlier input waits in the connection.
    socket.pause();
    keepAlive(socket);
    boundFrames(socket, FRAMES);
    socket.on("close", () => {
      clearTimeout(this.#resizing);
      if (this.#ticket !== undefined) this.#process.send({ kind: "leave", ticket: this.#ticket });
      this.#stream?.destroy();
    });
    this.#process.begin().then(
      () => this.#requestTerminal(socket),
      (error: unknown) => {
        this.#log.error({ err: error }, "cannot open a web terminal");
        leave(socket, DENIED);
      },
    );
  }

  #requestTerminal(socket: WebSocket): void {
    this.#ticket = this.#process.expect(
      (stream) => this.#join(socket, stream),
      () => leave(socket, DENIED),
    );
    this.#process.send({ kind: "terminal", ticket: this.#ticket, requested: this.#requested });
  }

  /**
   * Forwards the output of the gateway process to the browser. This output is the output of the shell, or the reason
   * why no shell was opened.
   */
  #join(socket: WebSocket, stream: Duplex): void {
    this.#stream = stream;
    if (socket.readyState !== socket.OPEN) stream.destroy();
    // Each text frame must contain whole characters, so the decoder splits the output only between characters.
    const decoder = new StringDecoder("utf8");
    const toBrowser = new Writable({
      write: (output: Buffer, _encoding, done) => {
        const text = decoder.write(output);
        if (text === "") done();
        else socket.send(text, done);
      },
    });
    toBrowser.on("error", () => socket.terminate());
    stream.pipe(toBrowser);
    // The gateway process's stream can also close without an end event, before its last output.
    stream.on("close", () => toBrowser.end());
    toBrowser.on("close", () => leave(socket));
    socket.resume();
  }

  #receive(socket: WebSocket, data: RawData): void {
    const message = readMessage(String(data));
    if (message === undefined) {
      closeWebSocket(socket, 1007, "messages must be {kind, data}");
      return;
    }
    if (message.kind === 1) {
      const input = Buffer.from(message.data as string, "base64");
      this.#type(socket, typeof message.data === "string" ? input : Buffer.from(message.data));
      return;
    }
    const { cols: width, rows: height } = message.data;
    this.#size = { width, height };
    if (this.#resizing !== undefined) return;
    this.#resize();
    this.#resizing = setTimeout(() => {
      this.#resizing = undefined;
      this.#resize();
    }, RESIZING);
  }

  /** Sends the latest terminal size to the gateway process, unless that size was already sent. */
  #resize(): void {
    const [ticket, size] = [this.#ticket, this.#size];
    this.#size = undefined;
    if (ticket !== undefined && size !== undefined) this.#process.send({ kind: "resize", ticket, size });
  }

  #type(socket: WebSocket, input: Buffer): void {
    // Send the size first, because the device must receive it before the input that follows.
    this.#resize();
    if (this.#stream === undefined || this.#stream.write(input)) return;
    socket.pause();
    this.#stream.once("drain", () => socket.resume());
  }
}

function readMessage(text: string): z.output<typeof fromBrowser> | undefined {
  try {
    return fromBrowser.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Closes the WebSocket. If a reason is given, shows the reason first. */
function leave(socket: WebSocket, reason?: string): void {
  if (socket.readyState !== socket.OPEN) return;
  if (reason !== undefined) socket.send(reason);
  closeWebSocket(socket, 1000);
}

/** Pings a browser at regular intervals. Disconnects the browser if it does not answer. */
function keepAlive(socket: WebSocket): void {
  let answered = true;
  const timer = setInterval(() => {
    if (!answered) socket.terminate();
    answered = false;
    socket.ping();
  }, PING).unref();
  socket.on("pong", () => {
    answered = true;
  });
  socket.on("close", () => clearInterval(timer));
}
