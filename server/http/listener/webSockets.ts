import { type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { MINUTE } from "@gatehouse-access/sdk/times";
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { BusyError, InvalidError } from "../../errors.ts";
import type { HttpServers } from "./HttpServers.ts";

/** The limits of a listener's WebSockets. */
export interface WebSocketLimits {
  /** Maximum number of open WebSockets. */
  readonly most: number;
  /**
   * Time without messages, in milliseconds. After this time, the service checks whether more messages can arrive in a
   * conversation.
   */
  readonly silence: number;
}

const LIMITS: WebSocketLimits = { most: 5000, silence: 5 * MINUTE };
/** Time without data, in milliseconds. After this time, TCP checks whether the peer is alive. */
const TCP_KEEPALIVE = 30_000;
/** Maximum time, in milliseconds, for the peer to complete the closing handshake. */
const END_TIMEOUT = 1000;
/** Maximum number of frames that the service reads from the peer during the closing handshake. */
const FRAMES_AFTER_END = 16;
/** Maximum time, in milliseconds, that a stopping service waits for messages that it is still handling. */
const STOP_TIMEOUT = 5000;

/** Headers of responses that refuse a WebSocket temporarily. The value is the time until a retry, in seconds. */
const LATER = { "Retry-After": "5" };

/** Close codes of the service's WebSockets (RFC 6455, section 7.4.1). */
const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  noText: 1003,
  invalid: 1007,
  refused: 1008,
  failed: 1011,
  tryLater: 1013,
};

/** Error that ends a WebSocket. The peer and the log receive the reason, so the reason must not quote messages. */
export class EndOfConversation extends Error {
  readonly code: number;

  /**
   * Creates the error.
   * @param why `invalid`: a message is malformed. `refused`: the service can no longer accept messages on this
   *   WebSocket.
   */
  constructor(why: "invalid" | "refused", reason: string) {
    super(reason);
    this.code = CLOSE[why];
  }
}

/**
 * A conversation: the result of an operation that opens a WebSocket only to receive text messages. It handles the
 * messages that the peer sends.
 */
export abstract class Conversation {
  /**
   * Handles a text message. The service passes the next message only after this message has been handled.
   * @throws EndOfConversation to end the WebSocket
   */
  abstract receive(message: string): Promise<void>;
  /** Called after a period without messages. Returns true if no more messages can arrive. */
  abstract isOver(): Promise<boolean>;
}

/** The result of an operation that opens a WebSocket for messages of any kind, in both directions. */
export abstract class WebSocketHandler {
  /** Starts handling the open WebSocket. The service closes the WebSocket when the app stops. */
  abstract begin(webSocket: WebSocket): void;
}

/** Creates a handler from one function. */
export const webSocketHandler = (begin: (webSocket: WebSocket) => void): WebSocketHandler =>
  new (class extends WebSocketHandler {
    begin = begin;
  })();

/**
 * Closes a WebSocket. Reads only a few more frames, so that the peer can complete the closing handshake. Disconnects a
 * peer that sends more frames or takes too long.
 */
export function closeWebSocket(socket: WebSocket, code: number, reason?: string): void {
  let left = FRAMES_AFTER_END;
  const count = () => {
    left -= 1;
    if (left < 0) socket.terminate();
  };
  for (const frame of ["message", "ping", "pong"]) {
    socket.removeAllListeners(frame);
    socket.on(frame, count);
  }
  // Resume reading, because the peer's closing frame arrives after its earlier frames.
  socket.resume();
  socket.close(code, reason);
  const timer = setTimeout(() => socket.terminate(), END_TIMEOUT).unref();
  socket.on("close", () => clearTimeout(timer));
}

/** Length, in milliseconds, of the interval in which {@link boundFrames} counts frames. */
const FRAMES_INTERVAL = 30_000;

/**
 * Disconnects a peer that sends too many frames in 30 seconds. A limit on bytes is not sufficient, because the service
 * handles each frame, even a frame without data.
 * @param most maximum number of counted frames in 30 seconds
 * @param counts returns true if a frame counts toward the limit. By default, all frames count.
 * @param now returns the time of a monotonic clock, in milliseconds
 */
export function boundFrames(
  socket: WebSocket,
  most: number,
  counts: (frame: "message" | "ping" | "pong", data: RawData) => boolean = () => true,
  now: () => number = () => performance.now(),
): void {
  let [frames, began] = [0, now()];
  for (const frame of ["message", "ping", "pong"] as const) {
    socket.on(frame, (data: RawData) => {
      if (!counts(frame, data)) return;
      const time = now();
      if (time - began >= FRAMES_INTERVAL) [frames, began] = [0, time];
      frames += 1;
      if (frames > most) socket.terminate();
    });
  }
}

interface Upgrade {
  readonly socket: Socket;
  readonly head: Buffer;
  readonly connections: OpenWebSockets;
}

/** Upgrade requests that are waiting for a response. */
const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/**
 * Lets operations of the app respond with WebSockets. Upgrade requests pass through hooks and routes like all other
 * requests, so the service can reject an upgrade request with an HTTP response. When the app stops, it closes open
 * WebSockets.
 * @param servers the app's HTTP servers
 * @param limits replaces some of the default limits, for tests
 */
export function acceptWebSockets(
  app: FastifyInstance,
  servers: HttpServers,
  limits: Partial<WebSocketLimits> = {},
): void {
  const connections = new OpenWebSockets({ ...LIMITS, ...limits });
  const server = app.server as Server & { shouldUpgradeCallback?: (request: IncomingMessage) => boolean };
  // Node before 22.21 does not call `shouldUpgradeCallback`. These versions handle upgrade requests to HTTP/2 as if
  // they had no body.
  server.shouldUpgradeCallback = ({ headers }) => headers.upgrade?.toLowerCase() === "websocket";
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // Ignore the error, because a disconnected client needs no response. Without a listener, the error would end the
    // process.
    socket.on("error", () => socket.destroy());
    if (!servers.release(socket)) {
      socket.destroy();
      return;
    }
    upgrades.set(request, { socket, head, connections });
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.on("finish", () => socket.destroySoon());
    app.routing(request, response);
  });
  app.addHook("preClose", () => connections.stop());
}

/**
 * Answers a request with a WebSocket.
 * @param limit maximum size of a message, in bytes
 * @throws InvalidError the request is not for a WebSocket
 * @throws BusyError the maximum number of WebSockets is open, or the app is stopping
 */
export function openWebSocket(
  request: FastifyRequest,
  reply: FastifyReply,
  opened: Conversation | WebSocketHandler,
  limit: number,
): FastifyReply {
  const upgrade = upgrades.get(request.raw);
  if (upgrade === undefined)
    throw new InvalidError("the request is not for a WebSocket: send the header Upgrade: websocket");
  const { socket, head, connections } = upgrade;
  if (opened instanceof Conversation) connections.closeForNew();
  else connections.refuseWhenStopping();
  upgrades.delete(request.raw);
  reply.hijack();
  reply.raw.detachSocket(socket);
  serverFor(limit).handleUpgrade(request.raw, socket, head, (webSocket) => {
    socket.setKeepAlive(true, TCP_KEEPALIVE);
    if (opened instanceof Conversation) connections.add(webSocket, opened, request.log);
    else connections.keep(webSocket, opened);
  });
  return reply;
}

/** Servers that perform the WebSocket handshakes, by the maximum message size of the WebSockets. */
const handshakes = new Map<number, WebSocketServer>();

function serverFor(limit: number): WebSocketServer {
  let server = handshakes.get(limit);
  if (server === undefined) {
    server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: limit,
      // A packet can contain thousands of empty frames. With this setting, other connections have their turn after each
      // frame.
      allowSynchronousEvents: false,
    });
    handshakes.set(limit, server);
  }
  return server;
}

/** The open WebSockets of a listener. */
class OpenWebSockets {
  readonly #limits: WebSocketLimits;
  readonly #open = new Set<WebSocketConnection>();
  readonly #handled = new Set<WebSocket>();
  #stopping = false;

  constructor(limits: WebSocketLimits) {
    this.#limits = limits;
  }

  /**
   * If the limit is reached, closes the oldest WebSocket that has received no message. An attacker who opens idle
   * WebSockets therefore cannot block other clients.
   * @throws BusyError all open WebSockets have received messages, or the app is stopping
   */
  closeForNew(): void {
    this.refuseWhenStopping();
    if (this.#open.size < this.#limits.most) return;
    for (const connection of this.#open) {
      if (connection.received > 0) continue;
      this.#open.delete(connection);
      connection.closeForNew();
      return;
    }
    throw new BusyError("too many WebSockets are open", LATER);
  }

  /**
   * Rejects new WebSockets while the app is stopping.
   * @throws BusyError the app is stopping
   */
  refuseWhenStopping(): void {
    if (this.#stopping) throw new BusyError("the service is being stopped", LATER);
  }

  /** Starts the handler of a WebSocket. When the app stops, it closes the WebSocket. */
  keep(webSocket: WebSocket, handler: WebSocketHandler): void {
    this.#handled.add(webSocket);
    webSocket.on("close", () => this.#handled.delete(webSocket));
    handler.begin(webSocket);
  }

  add(webSocket: WebSocket, conversation: Conversation, log: FastifyBaseLogger): void {
    const connection = new WebSocketConnection(webSocket, conversation, log, this.#limits.silence);
    this.#open.add(connection);
    connection.done.finally(() => this.#open.delete(connection));
  }

  /** Closes all WebSockets. Messages that are being handled may finish. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const webSocket of this.#handled) {
      webSocket.close(CLOSE.goingAway);
      setImmediate(() => webSocket.terminate());
    }
    const all = [...this.#open];
    for (const connection of all) connection.stop();
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, STOP_TIMEOUT);
    });
    await Promise.race([Promise.all(all.map(({ done }) => done)), timeout]);
    clearTimeout(timer);
  }
}

/**
 * An open WebSocket of a conversation. While the service handles a message, it does not read from the socket, so only
 * messages that arrived in the same packet can wait here. The service sends no pings, because some clients never read.
 * If such a client closed the connection with unread pings, the system would reset the connection. The client's last
 * messages could then be lost.
 */
class WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #conversation: Conversation;
  readonly #log: FastifyBaseLogger;
  readonly #waiting: string[] = [];
  readonly #timer: NodeJS.Timeout;
  #working = false;
  #closed = false;
  #ended = false;
  #receivedBefore = 0;
  #finish: () => void = () => {};
  /** Number of messages received. */
  received = 0;
  /** Promise that resolves when the WebSocket is closed and no message is being handled. */
  readonly done = new Promise<void>((resolve) => {
    this.#finish = resolve;
  });

  constructor(socket: WebSocket, conversation: Conversation, log: FastifyBaseLogger, silence: number) {
    this.#socket = socket;
    this.#conversation = conversation;
    this.#log = log;
    log.info("WebSocket open");
    this.#timer = setInterval(() => void this.#endIfOver(), silence).unref();
    socket.on("message", (data: RawData, binary: boolean) => this.#take(data, binary));
    socket.on("error", ({ message }) => log.warn({ reason: message }, "WebSocket protocol error"));
    socket.on("close", (code: number) => {
      clearInterval(this.#timer);
      log.info({ code, messages: this.received }, "WebSocket closed");
      this.#closed = true;
      if (!this.#working) this.#finish();
    });
  }

  /** Closes the WebSocket, and drops waiting messages. */
  end(code: number, reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#waiting.length = 0;
    closeWebSocket(this.#socket, code, reason);
  }

  /** Closes the WebSocket to make room for a new one. */
  closeForNew(): void {
    this.#log.warn("too many open WebSockets: closing one that has sent no message");
    this.end(CLOSE.tryLater, "too many WebSockets are open");
  }

  /** Closes the WebSocket without waiting for the peer. */
  stop(): void {
    this.end(CLOSE.goingAway, "the service is being stopped");
    setImmediate(() => this.#socket.terminate());
  }

  #take(data: RawData, binary: boolean): void {
    if (this.#ended) return;
    this.received += 1;
    if (binary) {
      this.#refuse(CLOSE.noText, "messages must be text");
      return;
    }
    this.#waiting.push(String(data));
    if (this.#working) return;
    this.#socket.pause();
    void this.#work();
  }

  async #work(): Promise<void> {
    this.#working = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await this.#conversation.receive(next);
      } catch (error) {
        if (error instanceof EndOfConversation) this.#refuse(error.code, error.message);
        else this.#fail(error);
      }
    }
    this.#working = false;
    if (this.#closed) this.#finish();
    else this.#socket.resume();
  }

  #refuse(code: number, reason: string): void {
    this.#log.warn({ code, reason }, "WebSocket message rejected");
    this.end(code, reason);
  }

  #fail(error: unknown): void {
    this.#log.error({ err: error }, "cannot handle a WebSocket message");
    this.end(CLOSE.failed, "internal error");
  }

  async #endIfOver(): Promise<void> {
    const { received } = this;
    const hasReceived = received > this.#receivedBefore;
    this.#receivedBefore = received;
    if (hasReceived || this.#working) return;
    try {
      if (await this.#conversation.isOver()) this.end(CLOSE.normal, "no more messages can arrive");
    } catch (error) {
      this.#log.warn({ err: error }, "cannot check whether a WebSocket is still in use");
    }
  }
}
