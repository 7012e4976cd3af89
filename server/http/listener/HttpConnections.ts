import { IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Requests that may wait on a connection during the response to an earlier request. One more request destroys the
 * connection.
 */
const WAITING = 32;

interface PendingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The state of a connection: whether a request is being answered, and the requests that wait. */
interface ConnectionState {
  answering: boolean;
  readonly waiting: PendingRequest[];
}

/**
 * Manages the open connections of servers. Node would begin all requests of a connection at once, and keep every
 * response until the client reads it. Here, a connection has one request answered at a time. The next request begins
 * after the client's system has received the response. Requests of a closed connection are not begun.
 */
export class HttpConnections {
  readonly #states = new Map<Socket, ConnectionState>();
  readonly #turns = new LoopTurns();
  readonly #handshakes = new Map<string, Socket>();
  #closing = false;

  /**
   * The class of a server's requests. A client can send thousands of requests in one packet, and Node parses all of
   * them first. Node stops only at a request for another protocol (an upgrade), and closes the connection if nothing
   * listens for upgrades. So this class makes the first request above the limit look like an upgrade.
   */
  readonly Request: typeof IncomingMessage = requestClass(
    (socket) => (this.#states.get(socket)?.waiting.length ?? 0) >= WAITING,
  );

  /** Wraps a server's handler so that it receives the requests of a connection one by one. */
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
    // Reads do not wait for all writes, since a write takes several times as long.
    const reads = request.method === "GET" || request.method === "HEAD";
    this.#turns.begin(reads, () => {
      if (!socket.destroyed) handler(request, response);
    });
  }

  /** Tracks the server's new connections. */
  watch(server: Server, secure: boolean): void {
    server.on(secure ? "secureConnection" : "connection", (socket: Socket) => this.#add(socket));
    if (!secure) return;
    // The handshake has its own socket. The peer's address relates it to the secure socket that follows.
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
   * Releases a connection that continues with another protocol. The new owner closes it.
   * @returns false while one of its requests is being answered; the response still needs the connection
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
    declare isUpgrade: boolean | null;

    // Node sets this property after parsing a request's head. It reads the property before and after it begins the
    // request.
    get upgrade(): boolean | null {
      return this.isUpgrade;
    }

    set upgrade(value: boolean | null) {
      this.isUpgrade = isTooMany(this.socket) || value;
    }
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Jobs that begin at once in one turn of the event loop. Each further job gets its own turn. */
const CROWD = 32;
/** Jobs that may overtake a waiting job. */
const OVERTAKING = 4;

/**
 * Spreads jobs over the turns of the event loop. A turn accepts one new connection, and begins all requests that have
 * arrived on others. If each request takes a millisecond, several hundred busy clients make a turn so long that a new
 * connection waits for seconds. So a crowd of jobs begins one by one, each in its own turn, overtaking jobs first.
 * This reduces throughput slightly, so jobs in small numbers begin at once.
 */
export class LoopTurns {
  readonly #overtaking: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  /** Jobs that have overtaken the first waiting job. */
  #overtook = 0;
  /** Jobs that arrived in the present turn. */
  #arrived = 0;

  /**
   * Begins a job now or in a later turn.
   * @param overtakes true to run the job before jobs that do not overtake, up to a few at a time
   */
  begin(overtakes: boolean, job: () => void): void {
    if (this.#arrived === 0) setImmediate(this.#endTurn);
    this.#arrived += 1;
    if (this.#arrived <= CROWD && this.#overtaking.length + this.#waiting.length === 0) job();
    else (overtakes ? this.#overtaking : this.#waiting).push(job);
  }

  readonly #endTurn = (): void => {
    this.#arrived = 0;
    const next = this.#next();
    if (next === undefined) return;
    this.#arrived = 1;
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
