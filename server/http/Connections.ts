import { IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { LoopTurns } from "./LoopTurns.ts";

/** Requests that a connection may have sent while an earlier one of it is answered; with more it is cut off. */
const WAITING = 32;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** One connection: whether a request of it is being answered, and those that wait for that. */
interface Line {
  answering: boolean;
  readonly waiting: Exchange[];
}

/**
 * The open connections of servers. Node would begin all that a client sends on one connection at once, and keep every
 * answer until the client reads it; here a connection has one request answered at a time, and the next one begins when
 * the client's system has taken the answer. What a connection that is gone had asked for is not begun.
 */
export class Connections {
  readonly #lines = new Map<Socket, Line>();
  readonly #turns = new LoopTurns();
  readonly #handshakes = new Map<string, Socket>();
  #closing = false;

  /**
   * The class of a server's requests. A client can send thousands in one packet, and Node reads all of them before
   * anything else; it reads on no further than a request that asks for another protocol, and ends a connection for which
   * nobody listens to that. So the request that is one too many says that it does.
   */
  readonly Request: typeof IncomingMessage = requestClass(
    (socket) => (this.#lines.get(socket)?.waiting.length ?? 0) >= WAITING,
  );

  /** Makes a server's handler take the requests of a connection one by one. */
  inTurn(handler: RequestListener): RequestListener {
    return (request, response) => {
      const line = this.#lines.get(request.socket);
      if (line === undefined) handler(request, response);
      else if (!line.answering) this.#answer(line, { request, response }, handler);
      else if (line.waiting.length < WAITING) line.waiting.push({ request, response });
      else request.socket.destroy();
    };
  }

  #answer(line: Line, { request, response }: Exchange, handler: RequestListener): void {
    const { socket } = request;
    line.answering = true;
    response.once("close", () => {
      const next = line.waiting.shift();
      if (next !== undefined && !socket.destroyed) {
        this.#answer(line, next, handler);
        return;
      }
      line.answering = false;
      if (this.#closing) socket.destroySoon();
    });
    // Who reads does not wait for all who write: a write takes several times as long.
    const reads = request.method === "GET" || request.method === "HEAD";
    this.#turns.begin(reads, () => {
      if (!socket.destroyed) handler(request, response);
    });
  }

  /** Keeps account of the server's connections from now on. */
  watch(server: Server, secure: boolean): void {
    server.on(secure ? "secureConnection" : "connection", (socket: Socket) => this.#add(socket));
    if (!secure) return;
    // The socket of the handshake is another one, which has the peer in common with the one that follows.
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
    this.#lines.set(socket, { answering: false, waiting: [] });
    socket.once("close", () => this.#lines.delete(socket));
  }

  /**
   * Gives a connection away that goes on with another protocol: whoever has it ends it.
   * @returns false where a request of it is being answered, which has its end of the connection
   */
  release(socket: Socket): boolean {
    if (this.#lines.get(socket)?.answering) return false;
    this.#lines.delete(socket);
    return true;
  }

  /** Ends the connections on which nothing is answered, new ones, and the others as soon as nothing is. */
  close(): void {
    this.#closing = true;
    for (const socket of this.#handshakes.values()) socket.destroy();
    for (const [socket, { answering }] of this.#lines) if (!answering) socket.destroy();
  }
}

function requestClass(isTooMany: (socket: Socket) => boolean): typeof IncomingMessage {
  return class extends IncomingMessage {
    declare asksForUpgrade: boolean | null;

    // Node sets it when it has read a request's head, and looks at it before and after the request is begun.
    get upgrade(): boolean | null {
      return this.asksForUpgrade;
    }

    set upgrade(asked: boolean | null) {
      this.asksForUpgrade = isTooMany(this.socket) || asked;
    }
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;
