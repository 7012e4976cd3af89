import { type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { BusyError, InvalidError } from "../errors.ts";
import type { HttpServers } from "./HttpServers.ts";

/** How many WebSockets there may be, and for how long one may be silent. */
export interface WebSocketLimits {
  /** Most of a listener at once. */
  readonly most: number;
  /** How often it is asked whether a silent conversation is over, in milliseconds. */
  readonly silence: number;
}

const LIMITS: WebSocketLimits = { most: 5000, silence: 5 * 60_000 };
/** After so long without any sign the network is asked whether the other end is there, in milliseconds. */
const TCP_KEEPALIVE = 30_000;
/** How long the other end may take to agree to the end, in milliseconds. */
const END_TIMEOUT = 1000;
/** How long stopping waits for messages that are being handled, in milliseconds. */
const STOP_TIMEOUT = 5000;

/** Codes with which a WebSocket is closed (RFC 6455, section 7.4.1). */
const CLOSE = {
  normal: 1000,
  goingAway: 1001,
  noText: 1003,
  invalid: 1007,
  refused: 1008,
  failed: 1011,
  tryLater: 1013,
};

/** Ends a WebSocket. The reason goes to the other end and to the log, so that it holds nothing of a message. */
export class EndOfConversation extends Error {
  readonly code: number;

  /** @param why `invalid`: a message is not as it must be; `refused`: there is no use for messages any more */
  constructor(why: "invalid" | "refused", reason: string) {
    super(reason);
    this.code = CLOSE[why];
  }
}

/** What an operation answers whose success is a WebSocket. */
export abstract class Conversation {
  /**
   * Handles a text message; the next one waits for that.
   * @throws EndOfConversation
   */
  abstract receive(message: string): Promise<void>;
  /** Asked when nothing came for a while: true when nothing can come any more. */
  abstract isOver(): Promise<boolean>;
}

interface Upgrade {
  readonly socket: Socket;
  readonly head: Buffer;
  readonly connections: OpenWebSockets;
}

/** Requests for a WebSocket that are not answered yet. */
const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/**
 * Lets operations of the app answer with WebSockets. Requests for one take the same way through hooks and routes as
 * others, and are refused by HTTP like them. Stopping the app ends what is open.
 * @param servers below the app
 * @param limits other than the usual ones, for tests
 */
export function acceptWebSockets(
  app: FastifyInstance,
  servers: HttpServers,
  limits: Partial<WebSocketLimits> = {},
): void {
  const connections = new OpenWebSockets({ ...LIMITS, ...limits });
  const server = app.server as Server & { shouldUpgradeCallback?: (request: IncomingMessage) => boolean };
  // Node before 22.21 does not ask: there, requests to go on with HTTP/2 are answered as if they had no body.
  server.shouldUpgradeCallback = ({ headers }) => headers.upgrade?.toLowerCase() === "websocket";
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // Whoever is gone needs no answer; without a listener the process would end.
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
 * @param limit of a message, in bytes
 * @throws InvalidError the request is not for one
 * @throws BusyError there are as many as there may be
 */
export function openWebSocket(
  request: FastifyRequest,
  reply: FastifyReply,
  conversation: Conversation,
  limit: number,
): FastifyReply {
  const upgrade = upgrades.get(request.raw);
  if (upgrade === undefined)
    throw new InvalidError("the request must be for a WebSocket: Upgrade: websocket");
  const { socket, head, connections } = upgrade;
  connections.makeRoom();
  upgrades.delete(request.raw);
  reply.hijack();
  reply.raw.detachSocket(socket);
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limit,
  });
  server.handleUpgrade(request.raw, socket, head, (webSocket) => {
    socket.setKeepAlive(true, TCP_KEEPALIVE);
    connections.add(webSocket, conversation, request.log);
  });
  return reply;
}

/** The WebSockets of a listener. */
class OpenWebSockets {
  readonly #limits: WebSocketLimits;
  readonly #open = new Set<Connection>();
  #stopping = false;

  constructor(limits: WebSocketLimits) {
    this.#limits = limits;
  }

  /**
   * At the limit, one goes on which nothing came yet, the oldest: strangers who cause such ones keep nobody out.
   * @throws BusyError something came on all of them, or the app stops
   */
  makeRoom(): void {
    if (this.#stopping) throw new BusyError("the service is being stopped");
    if (this.#open.size < this.#limits.most) return;
    for (const connection of this.#open) {
      if (connection.received > 0) continue;
      this.#open.delete(connection);
      connection.makeRoom();
      return;
    }
    throw new BusyError("there are too many WebSockets");
  }

  add(webSocket: WebSocket, conversation: Conversation, log: FastifyBaseLogger): void {
    const connection = new Connection(webSocket, conversation, log, this.#limits.silence);
    this.#open.add(connection);
    connection.done.finally(() => this.#open.delete(connection));
  }

  /** Ends all of them; what is being handled may come to its end. */
  async stop(): Promise<void> {
    this.#stopping = true;
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
 * One WebSocket. While a message is handled nothing is read, so that no more waits here than came in one piece. It
 * sends no pings: there are senders that never read, and what they did not read would make their end of the
 * connection a reset, which may cost their last messages.
 */
class Connection {
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
  /** How many messages came. */
  received = 0;
  /** Settled when it is closed and nothing of it is being handled. */
  readonly done = new Promise<void>((resolve) => {
    this.#finish = resolve;
  });

  constructor(socket: WebSocket, conversation: Conversation, log: FastifyBaseLogger, silence: number) {
    this.#socket = socket;
    this.#conversation = conversation;
    this.#log = log;
    log.info("WebSocket open");
    this.#timer = setInterval(() => void this.#lookIfOver(), silence).unref();
    socket.on("message", (data: RawData, binary: boolean) => this.#take(data, binary));
    socket.on("error", ({ message }) =>
      log.warn({ reason: message }, "WebSocket is not spoken as it must be"),
    );
    socket.on("close", (code: number) => {
      clearInterval(this.#timer);
      log.info({ code, messages: this.received }, "WebSocket closed");
      this.#closed = true;
      if (!this.#working) this.#finish();
    });
  }

  /** Closes it; what waits to be handled is given up. */
  end(code: number, reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#waiting.length = 0;
    this.#socket.resume();
    this.#socket.close(code, reason);
    setTimeout(() => this.#socket.terminate(), END_TIMEOUT).unref();
  }

  /** Closes it in favour of another one. */
  makeRoom(): void {
    this.#log.warn("there are too many WebSockets: one on which nothing came ends");
    this.end(CLOSE.tryLater, "there are too many");
  }

  /** Closes it without waiting for the other end. */
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
    this.#log.warn({ code, reason }, "a message of a WebSocket is refused");
    this.end(code, reason);
  }

  #fail(error: unknown): void {
    this.#log.error({ err: error }, "a message of a WebSocket could not be handled");
    this.end(CLOSE.failed, "internal error");
  }

  async #lookIfOver(): Promise<void> {
    const { received } = this;
    const heard = received > this.#receivedBefore;
    this.#receivedBefore = received;
    if (heard || this.#working) return;
    try {
      if (await this.#conversation.isOver()) this.end(CLOSE.normal, "nothing more can come");
    } catch (error) {
      this.#log.warn({ err: error }, "it could not be seen whether a WebSocket is still of use");
    }
  }
}
