import type { Socket } from "node:net";

/**
 * Maximum time, in milliseconds, for a client to log in. Users need time to compare a host key and to type a password.
 */
const LOGIN = 120_000;
/** Maximum total number of connections that are not logged in, from all networks. */
const MOST = 5_000;
/**
 * Maximum number of concurrent key exchanges, in total and per network. A key exchange costs one or two milliseconds of
 * CPU time.
 */
const EXCHANGES = { ofAll: 128, ofNetwork: 16 };
/**
 * Time, in milliseconds, after which a key exchange no longer counts toward the limits. A key exchange that takes
 * longer is only waiting for the client, and uses no CPU time.
 */
const EXCHANGE = 3_000;

interface Startup {
  readonly network: Network;
  readonly timer: NodeJS.Timeout;
  /** Starts the key exchange. Undefined until the client has sent its identification. */
  begin: (() => void) | undefined;
  /** Timer after which the key exchange no longer counts. Undefined while the key exchange does not count. */
  exchange: NodeJS.Timeout | undefined;
}

/** The connections from one network that are not logged in. */
interface Network {
  readonly name: string;
  /** All connections, oldest first. */
  readonly sockets: Set<Socket>;
  /** The connections whose key exchange has not started, oldest first. */
  readonly waiting: Set<Socket>;
  exchanges: number;
}

/**
 * The client connections that are not logged in yet. If the limit is reached, a new connection closes the oldest one,
 * so that a client with many silent connections does not block other clients. Only a limited number of connections
 * exchange keys at the same time. The other connections wait, and their networks take turns.
 */
export class Startups {
  readonly #most: number;
  /** All connections, oldest first. */
  readonly #open = new Map<Socket, Startup>();
  readonly #networks = new Map<string, Network>();
  /** The networks with waiting connections. The network whose turn is next comes first. */
  readonly #waiting = new Set<Network>();
  #exchanges = 0;

  /** @param most maximum number of connections per network; 0 means no limit */
  constructor(most: number) {
    this.#most = most;
  }

  add(socket: Socket, name: string): void {
    const network: Network = this.#networks.get(name) ?? {
      name,
      sockets: new Set(),
      waiting: new Set(),
      exchanges: 0,
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
   * Queues a connection whose client is ready to exchange keys.
   * @param begin called when the key exchange may start
   */
  exchange(socket: Socket, begin: () => void): void {
    const startup = this.#open.get(socket);
    if (startup === undefined) return;
    startup.begin = begin;
    startup.network.waiting.add(socket);
    this.#waiting.add(startup.network);
    this.#turn();
  }

  /** Records that the key exchange of a connection is complete. */
  shookHands(socket: Socket): void {
    const startup = this.#open.get(socket);
    if (startup !== undefined) this.#endExchange(startup);
  }

  /** Removes a connection that is logged in or has ended. */
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

  /** Closes all connections. */
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

  /** Starts key exchanges of waiting connections, up to the limits. */
  #turn(): void {
    for (const network of this.#waiting) {
      if (this.#exchanges >= EXCHANGES.ofAll) return;
      const [socket] = network.waiting;
      const next = socket && this.#open.get(socket);
      if (next !== undefined && network.exchanges >= EXCHANGES.ofNetwork) continue;
      // Move the network to the end of the queue, so that each of the other networks has its turn first.
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
