import { IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { Server as Listener, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { boundRest, CHUNKS_MAX } from "./requestBodies.ts";

/**
 * Maximum number of requests that wait on a connection while an earlier request is being answered. If a client sends
 * more requests, the service closes the connection immediately.
 */
const WAITING = 32;

/**
 * Maximum number of connections that wait for Node to accept them. This is the default value of Node's function
 * `listen`.
 */
const BACKLOG = 511;

interface PendingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The state of a connection: the response to the current request, and the requests that are waiting. */
interface ConnectionState {
  answering: ServerResponse | undefined;
  readonly waiting: PendingRequest[];
}

/**
 * Manages the open connections of servers, and answers the requests of each connection one at a time. Node itself would
 * begin all requests of a connection immediately, and keep every response until the client reads it. Here, the next
 * request begins after the client's system has received the previous response. Waiting requests of a closed connection
 * never begin.
 */
export class HttpConnections {
  readonly #states = new Map<Socket, ConnectionState>();
  readonly #turns = new LoopTurns();
  readonly #handshakes = new Map<string, Socket>();
  readonly #servers: Server[] = [];
  /** Number of connections that the servers have accepted. */
  #accepted = 0;
  #ending = false;
  #closing = false;

  /**
   * The class of a server's request objects. Limits the number of requests that Node parses. A client can send
   * thousands of requests in one packet, and Node would parse all of them before it answers any. Node stops parsing
   * only at a request for a different protocol (an upgrade), and closes the connection if the server does not handle
   * upgrades. The class therefore marks the first request above the limit as an upgrade.
   */
  readonly Request: typeof IncomingMessage = requestClass(
    (socket) => (this.#states.get(socket)?.waiting.length ?? 0) >= WAITING,
  );

  /** Wraps a server's handler so that it receives the requests of a connection one at a time. */
  oneAtATime(handler: RequestListener): RequestListener {
    return (request, response) => {
      const state = this.#states.get(request.socket);
      if (state === undefined) handler(request, response);
      else if (state.answering === undefined) this.#answer(state, { request, response }, handler);
      else if (state.waiting.length < WAITING) state.waiting.push({ request, response });
      else request.socket.destroy();
    };
  }

  #answer(state: ConnectionState, { request, response }: PendingRequest, handler: RequestListener): void {
    const { socket } = request;
    state.answering = response;
    if (this.#ending) endAfter(state);
    response.once("finish", () => {
      if (!request.complete) boundRest(request);
    });
    response.once("close", () => {
      const next = state.waiting.shift();
      // After a response with `Connection: close`, no further request of the connection begins (RFC 9112, section 9.6).
      if (next !== undefined && socket.writable) {
        this.#answer(state, next, handler);
        return;
      }
      state.answering = undefined;
      if (this.#closing) socket.destroySoon();
    });
    // Read requests may overtake write requests, because a write takes several times as long as a read.
    const reads = request.method === "GET" || request.method === "HEAD";
    this.#turns.begin(reads, () => {
      if (!socket.destroyed) handler(request, response);
    });
  }

  /** Tracks the server's new connections. */
  watch(server: Server, secure: boolean): void {
    this.#servers.push(server);
    server.on("connection", () => {
      this.#accepted += 1;
    });
    server.on(secure ? "secureConnection" : "connection", (socket: Socket) => this.#add(socket));
    if (!secure) return;
    // During the TLS handshake, the connection has a plain socket. A TLS socket with the same peer address and port
    // then replaces the plain socket.
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
    this.#states.set(socket, { answering: undefined, waiting: [] });
    socket.once("close", () => this.#states.delete(socket));
  }

  /**
   * Releases a connection that continues with a different protocol. The caller must close the released connection.
   * @returns false if a request of the connection is being answered, because the response still needs the connection
   */
  release(socket: Socket): boolean {
    if (this.#states.get(socket)?.answering !== undefined) return false;
    this.#states.delete(socket);
    return true;
  }

  /**
   * Ends each connection after its last response. The last response has the header `Connection: close`. The header
   * prevents a client, for example a load balancer, from sending a request on a connection that is about to close.
   */
  endAfterResponses(): void {
    this.#ending = true;
    for (const state of this.#states.values()) endAfter(state);
  }

  /**
   * Stops accepting connections, and closes idle connections. Closes each other connection when its request has been
   * answered. Answers all requests that reached this machine before this call. Closes connections that are in a TLS
   * handshake.
   */
  async close(): Promise<void> {
    this.endAfterResponses();
    await this.#acceptWaiting();
    // Do not call the HTTP server's own `close`, because it would also close idle connections.
    for (const server of this.#servers) Listener.prototype.close.call(server);
    // Between two turns, Node reads all data that has arrived. Wait for two turns, because the current turn may already
    // have read its data.
    await nextTurn();
    await nextTurn();
    this.#closing = true;
    for (const socket of this.#handshakes.values()) socket.destroy();
    for (const [socket, { answering }] of this.#states) if (answering === undefined) socket.destroy();
  }

  /**
   * Accepts the connections that are waiting in the system's queue. Otherwise, the system resets them when a listening
   * socket closes, although their clients may have sent a request.
   */
  async #acceptWaiting(): Promise<void> {
    // Skip the current turn, because it may already have accepted its connection.
    await nextTurn();
    for (let turn = 0; turn < BACKLOG; turn += 1) {
      const before = this.#accepted;
      await nextTurn();
      if (this.#accepted === before) return;
    }
  }
}

/**
 * Marks the current response as the last one of its connection. Does nothing if further requests are waiting or if the
 * response has begun.
 */
function endAfter({ answering, waiting }: ConnectionState): void {
  if (answering === undefined || answering.headersSent || waiting.length > 0) return;
  answering.setHeader("Connection", "close");
}

function requestClass(isTooMany: (socket: Socket) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    declare isUpgrade: boolean | null;
    chunks = 0;

    // The property `upgrade` of Node's requests. Node sets it after it has parsed the head of a request. Node reads it
    // both before and after it begins the request.
    get upgrade(): boolean | null {
      return this.isUpgrade;
    }

    set upgrade(value: boolean | null) {
      this.isUpgrade = isTooMany(this.socket) || value;
    }

    /** Receives the next chunk of the body. The chunk is null at the end of the body. */
    override push(chunk: unknown, encoding?: BufferEncoding): boolean {
      if (chunk !== null) this.chunks += 1;
      if (this.chunks <= CHUNKS_MAX) return super.push(chunk, encoding);
      // Spend little time on further chunks, because Node also parses the rest of the packet.
      if (this.chunks === CHUNKS_MAX + 1) this.socket.destroy();
      return false;
    }
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/**
 * Maximum number of jobs (requests) that begin immediately in one turn of the event loop. Each further job begins in a
 * separate turn.
 */
const CROWD = 32;
/** Maximum number of jobs (requests) that may overtake a waiting job. */
const OVERTAKING = 4;

/**
 * Spreads the start of jobs (requests) over the turns of the event loop. In one turn, Node accepts one new connection,
 * and begins all requests that have arrived on open connections. If each request takes a millisecond, several hundred
 * busy clients make a turn so long that a new connection waits for seconds. So if many jobs are waiting, each job
 * begins in a separate turn, and overtaking jobs begin first. A small number of jobs begins immediately, because
 * separate turns reduce throughput slightly.
 */
export class LoopTurns {
  readonly #overtaking: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];
  /** Number of jobs that have overtaken the first waiting job. */
  #overtook = 0;
  /** Number of jobs that have arrived in the current turn. */
  #arrived = 0;

  /**
   * Begins a job now or in a later turn.
   * @param overtakes true if the job may begin before waiting jobs that do not overtake; only a few jobs in a row may
   *   overtake
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
