import { IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Requests that may wait on a connection while an earlier one is answered; with more the connection is destroyed. */
const WAITING = 32;

interface PendingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The state of a connection: whether a request is being answered, and the requests that wait for that. */
interface ConnectionState {
  answering: boolean;
  readonly waiting: PendingRequest[];
}

/**
 * The open connections of servers. Node would begin all requests that a client sends on one connection at once, and
 * keep every response until the client reads it. Here a connection has one request answered at a time, and the next one
 * begins once the client's system has received the response. Requests of a closed connection are not begun.
 */
export class HttpConnections {
  readonly #states = new Map<Socket, ConnectionState>();
  readonly #turns = new LoopTurns();
  readonly #handshakes = new Map<string, Socket>();
  #closing = false;

  /**
   * The class of a server's requests. A client can send thousands in one packet, and Node parses all of them first. It
   * stops only at a request for another protocol (an upgrade), and closes the connection if nothing listens for
   * upgrades. So this class makes the first request too many look like an upgrade.
   */
  readonly Request: typeof IncomingMessage = requestClass(
    (socket) => (this.#states.get(socket)?.waiting.length ?? 0) >= WAITING,
  );

  /** Wraps a server's handler so that it gets the requests of a connection one by one. */
  oneAtATime(handler: RequestListener): RequestListener {
    return (request, response) => {
      const state = this.#states.get(request.socket);
      if (state === undefined) handler(request, response);
      else if (!state.answering) this.#answer(state, { request, response }, handler);
      else if (state.waiting.length < WAITING) state.waiting.push({ request, response });
      else request.socket.destroy();
    };
  }

  #answer(state: ConnectionState, { request, response }: PendingRequest, handler: RequestListener): void {
    const { socket } = request;
    state.answering = true;
    response.once("close", () => {
      const next = state.waiting.shift();
      if (next !== undefined && !socket.destroyed) {
        this.#answer(state, next, handler);
        return;
      }
      state.answering = false;
      if (this.#closing) socket.destroySoon();
    });
    // Reads do not wait for all writes: a write takes several times as long.
    const reads = request.method === "GET" || request.method === "HEAD";
    this.#turns.begin(reads, () => {
      if (!socket.destroyed) handler(request, response);
    });
  }

  /** Tracks the server's connections from now on. */
  watch(server: Server, secure: boolean): void {
    server.on(secure ? "secureConnection" : "connection", (socket: Socket) => this.#add(socket));
    if (!secure) return;
    // The handshake has a socket of its own; the peer's address relates it to the secure socket that follows.
    server.on("connection", (socket: Socket) => {
      const peer = peerOf(socket);
      this.#handshakes.set(peer, socket);
      socket.once("close", () => this.#handshakes.delete(peer));
      if (this.#closing) socket.destroy();
    });
    server.on("secureConnection", (socket: Socket) => this.#handshakes.delete(peerOf(socket)));
  }

  #add(socket: Socket): void {
    if (this.#closing) {
      socket.destroy();
      return;
    }
    this.#states.set(socket, { answering: false, waiting: [] });
    socket.once("close", () => this.#states.delete(socket));
  }

  /**
   * Hands over a connection that goes on with another protocol; the new holder closes it.
   * @returns false while one of its requests is being answered, whose response still needs the connection
   */
  release(socket: Socket): boolean {
    if (this.#states.get(socket)?.answering) return false;
    this.#states.delete(socket);
    return true;
  }

  /** Closes idle and new connections at once, and the others as soon as their request is answered. */
  close(): void {
    this.#closing = true;
    for (const socket of this.#handshakes.values()) socket.destroy();
    for (const [socket, { answering }] of this.#states) if (!answering) socket.destroy();
  }
}

function requestClass(isTooMany: (socket: Socket) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    declare asksForUpgrade: boolean | null;

    // Node sets it after parsing a request's head, and reads it before and after it begins the request.
    get upgrade(): boolean | null {
      return this.asksForUpgrade;
    }

    set upgrade(asked: boolean | null) {
      this.asksForUpgrade = isTooMany(this.socket) || asked;
    }
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Jobs that begin at once in one turn of the event loop; further ones get a turn each. */
const CROWD = 32;
/** Jobs that may overtake a waiting one. */
const OVERTAKING = 4;

/**
 * Spreads jobs over the turns of the event loop. A turn accepts one new connection, and begins all requests that have
 * arrived on others: if each takes a millisecond, several hundred busy clients make a turn so long that a new
 * connection waits for seconds. So a crowd of jobs begins one by one, each in a turn of its own, overtaking jobs first.
 * This costs some throughput, so jobs in small numbers begin at once.
 */
export class LoopTurns {
  readonly #overtaking: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  /** Jobs that have overtaken the first waiting one. */
  #overtook = 0;
  /** Jobs that arrived in the present turn. */
  #came = 0;

  /** @param overtakes goes before jobs that do not overtake, a few at a time */
  begin(overtakes: boolean, job: () => void): void {
    if (this.#came === 0) setImmediate(this.#endTurn);
    this.#came += 1;
    if (this.#came <= CROWD && this.#overtaking.length + this.#waiting.length === 0) job();
    else (overtakes ? this.#overtaking : this.#waiting).push(job);
  }

  readonly #endTurn = (): void => {
    this.#came = 0;
    const next = this.#next();
    if (next === undefined) return;
    this.#came = 1;
    setImmediate(this.#endTurn);
    next();
  };

  #next(): (() => void) | undefined {
    const overtakes = this.#waiting.length === 0 || this.#overtook < OVERTAKING;
    const overtaking = overtakes ? this.#overtaking.shift() : undefined;
    this.#overtook = overtaking === undefined ? 0 : this.#overtook + 1;
    return overtaking ?? this.#waiting.shift();
  }
}
