import type { Socket } from "node:net";

/** How long a client may take for the key exchange, and then to log in, in milliseconds. */
const HANDSHAKE = 15_000;
const LOGIN = 120_000;
/** Connections of all networks that are not logged in, at a time. */
const MOST = 5_000;

interface Startup {
  readonly socket: Socket;
  readonly network: string;
  timer: NodeJS.Timeout;
}

/**
 * The connections that are not logged in yet. Where there are too many, the oldest makes room for the newest: whoever
 * opens silent ones keeps nobody out.
 */
export class Startups {
  readonly #most: number;
  /** By their ends, the oldest first. */
  readonly #open = new Map<string, Startup>();
  readonly #ofNetwork = new Map<string, Set<string>>();

  /** @param most of one network; 0: any number */
  constructor(most: number) {
    this.#most = most;
  }

  /** @param end identifies the connection */
  add(end: string, network: string, socket: Socket): void {
    const siblings = this.#ofNetwork.get(network) ?? new Set();
    const [oldestSibling] = siblings;
    if (this.#most > 0 && siblings.size >= this.#most) this.#drop(oldestSibling);
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST) this.#drop(oldest);
    siblings.add(end);
    this.#ofNetwork.set(network, siblings);
    this.#open.set(end, { socket, network, timer: limit(socket, HANDSHAKE) });
    socket.on("close", () => this.delete(end));
  }

  /** The key exchange is done: people may take their time to type. */
  shookHands(end: string): void {
    const startup = this.#open.get(end);
    if (startup === undefined) return;
    clearTimeout(startup.timer);
    startup.timer = limit(startup.socket, LOGIN);
  }

  /** The connection is logged in, or has ended. */
  delete(end: string): void {
    const startup = this.#open.get(end);
    if (startup === undefined) return;
    clearTimeout(startup.timer);
    this.#open.delete(end);
    const siblings = this.#ofNetwork.get(startup.network);
    siblings?.delete(end);
    if (siblings?.size === 0) this.#ofNetwork.delete(startup.network);
  }

  /** Ends all of them. */
  clear(): void {
    for (const end of [...this.#open.keys()]) this.#drop(end);
  }

  #drop(end: string | undefined): void {
    const startup = end === undefined ? undefined : this.#open.get(end);
    if (end === undefined || startup === undefined) return;
    this.delete(end);
    startup.socket.destroy();
  }
}

const limit = (socket: Socket, milliseconds: number): NodeJS.Timeout =>
  setTimeout(() => socket.destroy(), milliseconds).unref();
