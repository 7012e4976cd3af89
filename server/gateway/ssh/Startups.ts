import type { Socket } from "node:net";

/** How long a client may take to log in, in milliseconds: people take their time to compare a host key, and to type. */
const LOGIN = 120_000;
/** Connections of all networks that are not logged in, at a time. */
const MOST = 5_000;
/** Key exchanges at a time, of all networks and of one: each costs the process a millisecond or two. */
const EXCHANGES = { ofAll: 128, ofNetwork: 16 };
/** How long a key exchange counts, in milliseconds: one that takes longer waits for its client, and costs nothing. */
const EXCHANGE = 3_000;

interface Startup {
  readonly network: Network;
  readonly timer: NodeJS.Timeout;
  /** Begins the key exchange; undefined while the client has not identified itself. */
  begin: (() => void) | undefined;
  /** Ends when its key exchange counts no more; undefined before that has begun, and after. */
  exchange: NodeJS.Timeout | undefined;
}

/** The connections of a network that are not logged in. */
interface Network {
  readonly name: string;
  /** The oldest first. */
  readonly sockets: Set<Socket>;
  /** Those among them that have not begun, likewise. */
  readonly waiting: Set<Socket>;
  exchanges: number;
}

/**
 * The connections that are not logged in yet. Where there are too many, the oldest makes room for the newest, so that a
 * client that opens silent ones does not keep others out. Few exchange keys at a time. The others wait, and each network
 * has its turn.
 */
export class Startups {
  readonly #most: number;
  /** The oldest first. */
  readonly #open = new Map<Socket, Startup>();
  readonly #networks = new Map<string, Network>();
  /** The networks with connections that wait, in the order of their turns. */
  readonly #waiting = new Set<Network>();
  #exchanges = 0;

  /** @param most of one network; 0: any number */
  constructor(most: number) {
    this.#most = most;
  }

  add(socket: Socket, name: string): void {
    const network: Network = this.#networks.get(name) ?? {
      ...{ name, sockets: new Set(), waiting: new Set(), exchanges: 0 },
    };
    const [oldestSibling] = network.sockets;
    if (this.#most > 0 && network.sockets.size >= this.#most) this.#drop(oldestSibling);
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST) this.#drop(oldest);
    this.#networks.set(name, network);
    network.sockets.add(socket);
    const timer = setTimeout(() => socket.destroy(), LOGIN).unref();
    this.#open.set(socket, { network, timer, begin: undefined, exchange: undefined });
    socket.on("close", () => this.delete(socket));
  }

  /**
   * The client wants to exchange keys.
   * @param begin called when it is its turn
   */
  exchange(socket: Socket, begin: () => void): void {
    const startup = this.#open.get(socket);
    if (startup === undefined) return;
    startup.begin = begin;
    startup.network.waiting.add(socket);
    this.#waiting.add(startup.network);
    this.#turn();
  }

  /** The key exchange is done. */
  shookHands(socket: Socket): void {
    const startup = this.#open.get(socket);
    if (startup !== undefined) this.#endExchange(startup);
  }

  /** The connection is logged in, or has ended. */
  delete(socket: Socket): void {
    const startup = this.#open.get(socket);
    if (startup === undefined) return;
    clearTimeout(startup.timer);
    this.#open.delete(socket);
    const { network } = startup;
    network.sockets.delete(socket);
    network.waiting.delete(socket);
    if (network.sockets.size === 0) this.#networks.delete(network.name);
    this.#endExchange(startup);
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

  #endExchange(startup: Startup): void {
    if (startup.exchange === undefined) return;
    clearTimeout(startup.exchange);
    startup.exchange = undefined;
    this.#exchanges -= 1;
    startup.network.exchanges -= 1;
    this.#turn();
  }

  /** Lets connections begin, while there is room. */
  #turn(): void {
    for (const network of this.#waiting) {
      if (this.#exchanges >= EXCHANGES.ofAll) return;
      const [socket] = network.waiting;
      const next = socket && this.#open.get(socket);
      if (next !== undefined && network.exchanges >= EXCHANGES.ofNetwork) continue;
      // Its next turn comes after those of all others.
      this.#waiting.delete(network);
      if (next === undefined) continue;
      network.waiting.delete(socket as Socket);
      this.#waiting.add(network);
      network.exchanges += 1;
      this.#exchanges += 1;
      next.exchange = setTimeout(() => this.#endExchange(next), EXCHANGE).unref();
      next.begin?.();
    }
  }
}
