import type { Socket } from "node:net";

/** How long a client may take for the key exchange, and then to log in, in milliseconds. */
const HANDSHAKE = 15_000;
const LOGIN = 120_000;
/** Connections of all networks that are not logged in, at a time. */
const MOST = 5_000;

interface Startup {
  readonly network: string;
  timer: NodeJS.Timeout;
}

/**
 * The connections that are not logged in yet. Where there are too many, the oldest makes room for the newest: whoever
 * opens silent ones keeps nobody out.
 */
export class Startups {
  readonly #most: number;
  /** The oldest first. */
  readonly #open = new Map<Socket, Startup>();
  readonly #ofNetwork = new Map<string, Set<Socket>>();

  /** @param most of one network; 0: any number */
  constructor(most: number) {
    this.#most = most;
  }

  add(socket: Socket, network: string): void {
    const siblings = this.#ofNetwork.get(network) ?? new Set();
    const [oldestSibling] = siblings;
    if (this.#most > 0 && siblings.size >= this.#most) this.#drop(oldestSibling);
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST) this.#drop(oldest);
    siblings.add(socket);
    this.#ofNetwork.set(network, siblings);
    this.#open.set(socket, { network, timer: limit(socket, HANDSHAKE) });
    socket.on("close", () => this.delete(socket));
  }

  /** The key exchange is done: people may take their time to type. */
  shookHands(socket: Socket): void {
    const startup = this.#open.get(socket);
    if (startup === undefined) return;
    clearTimeout(startup.timer);
    startup.timer = limit(socket, LOGIN);
  }

  /** The connection is logged in, or has ended. */
  delete(socket: Socket): void {
    const startup = this.#open.get(socket);
    if (startup === undefined) return;
    clearTimeout(startup.timer);
    this.#open.delete(socket);
    const siblings = this.#ofNetwork.get(startup.network);
    siblings?.delete(socket);
    if (siblings?.size === 0) this.#ofNetwork.delete(startup.network);
  }

  /** Ends all of them. */
  clear(): void {
    for (const socket of [...this.#open.keys()]) this.#drop(socket);
  }

  #drop(socket: Socket | undefined): void {
    if (socket === undefined) return;
    this.delete(socket);
    socket.destroy();
  }
}

const limit = (socket: Socket, milliseconds: number): NodeJS.Timeout =>
  setTimeout(() => socket.destroy(), milliseconds).unref();
