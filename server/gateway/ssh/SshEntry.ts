import { once } from "node:events";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import type { Algorithms, Connection, Server } from "ssh2";
import { addressMatcher, networkOf, normalAddress } from "../../addresses.ts";
import { Exhausted, MemoryCounts } from "../../http/limits/memoryCounts.ts";
import { OperatorError, reasonOf } from "../../OperatorError.ts";
import { hasBegunExchange, socketOf } from "./bounds.ts";
import { ClientConnection } from "./ClientConnection.ts";
import { readProxied } from "./proxyProtocol.ts";
import type { ServiceClient } from "./ServiceClient.ts";
import { Startups } from "./Startups.ts";
import { ssh2 } from "./ssh2.ts";

/** Number of unanswered keep-alive requests after which a client is treated as disconnected. */
const KEEP_ALIVES = 3;

/**
 * The algorithms that clients can choose from. SHA-1 and CBC are excluded. Strict key exchange is supported, because it
 * prevents prefix truncation. Finite-field groups are excluded, because their key exchange costs a server far more than
 * the client (CVE-2002-20001).
 */
const ALGORITHMS = {
  kex: [
    // Keep this order: Dropbear's handshake with the library hangs if the list begins with `curve25519-sha256`.
    "curve25519-sha256@libssh.org",
    "curve25519-sha256",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
  ],
  cipher: [
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes128-ctr",
  ],
  hmac: ["hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"],
  compress: ["none"],
} satisfies Algorithms;

/** The SSH listener for logins to devices. */
export class SshEntry {
  readonly #service: ServiceClient;
  readonly #server: Server;
  readonly #listener: NetServer;
  readonly #startups: Startups;
  readonly #connections = new Set<ClientConnection>();
  readonly #refusals = new MemoryCounts();
  readonly #exhausted = new Exhausted();
  #refusedExchanges = 0;
  readonly #isTrusted: (address: string) => boolean;
  /**
   * Client addresses, by socket. A connection cannot be identified by the peer's address and port that the SSH library
   * reports, because a client can use the same port for several connections one after another.
   */
  readonly #addresses = new WeakMap<Socket, string>();

  /** @param hostKey the listener's private host key, in the format of the key file */
  constructor(service: ServiceClient, hostKey: string) {
    const { settings } = service.start;
    this.#service = service;
    this.#startups = new Startups(settings.sshStartupsPerAddress);
    this.#isTrusted = addressMatcher(settings.trustedProxies);
    this.#server = new ssh2.Server(
      {
        hostKeys: [hostKey],
        ident: "Gatehouse",
        algorithms: ALGORITHMS,
        keepaliveInterval: settings.sshKeepAlive * 1000,
        keepaliveCountMax: KEEP_ALIVES,
      },
      (client) => this.#accept(client),
    );
    this.#listener = createServer({ noDelay: true, keepAlive: true }, (socket) => void this.#begin(socket));
  }

  /**
   * Starts accepting clients.
   * @returns the port
   * @throws OperatorError the process cannot listen on the address
   */
  async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
    this.#listener.listen(port, host);
    try {
      await once(this.#listener, "listening");
    } catch (error) {
      throw new OperatorError(
        `Cannot listen on ${host} port ${port} (--ssh-host, --ssh-port): ${reasonOf(error)}`,
      );
    }
    const address = this.#listener.address();
    return typeof address === "object" && address !== null ? address.port : port;
  }

  /** Returns the number of incomplete key exchanges that ended since the last call. */
  takeRefusedExchanges(): number {
    const count = this.#refusedExchanges;
    this.#refusedExchanges = 0;
    return count;
  }

  /** Stops accepting new clients. Logged-in clients stay connected. */
  stop(): void {
    this.#listener.close();
    this.#startups.clear();
  }

  /**
   * Closes the connections with the most waiting bytes, until the total number of waiting bytes no longer exceeds the
   * limit.
   * @param most the limit in bytes
   */
  relieve(most: number): void {
    const waiting = [...this.#connections].map((connection) => ({ connection, bytes: connection.waiting }));
    let sum = waiting.reduce((all, { bytes }) => all + bytes, 0);
    if (sum <= most) return;
    waiting.sort((one, other) => one.bytes - other.bytes);
    while (sum > most) {
      const last = waiting.pop();
      if (last === undefined) return;
      sum -= last.bytes;
      last.connection.destroy();
      this.#service.log.warn(
        { bytes: last.bytes },
        "closed a connection: too many bytes were waiting for it",
      );
    }
  }

  async #begin(socket: Socket): Promise<void> {
    socket.on("error", () => socket.destroy());
    const peer = normalAddress(socket.remoteAddress ?? "") ?? "";
    let address: string = peer;
    if (this.#isTrusted(peer)) {
      try {
        address = (await readProxied(socket)) ?? peer;
      } catch (error) {
        this.#service.log.warn(
          { peer, reason: (error as Error).message },
          "cannot read the PROXY protocol header of a trusted proxy",
        );
        socket.destroy();
        return;
      }
    }
    if (socket.destroyed) return;
    if (this.#isRefused(address)) {
      socket.destroy();
      return;
    }
    this.#addresses.set(socket, address);
    this.#startups.add(socket, networkOf(address));
    this.#server.injectSocket(socket);
  }

  #accept(client: Connection): void {
    // Add this listener first, because an `error` event without a listener ends the process.
    client.on("error", () => {});
    const socket = socketOf(client) as Socket;
    const address = this.#addresses.get(socket);
    if (address === undefined) {
      socket.destroy();
      return;
    }
    // The client has sent its identification, and is ready for the key exchange.
    socket.pause();
    this.#startups.exchange(socket, () => socket.resume());
    // An aborted key exchange costs the gateway as much as a login, so it is treated as a refused login.
    const brokenOff = () => {
      if (!hasBegunExchange(client)) return;
      this.#refusedExchanges += 1;
      this.#countRefusal(address);
    };
    socket.on("close", brokenOff);
    client.once("handshake", () => {
      socket.off("close", brokenOff);
      this.#startups.shookHands(socket);
    });
    // Close the connection, because no client needs a second key exchange before login.
    client.on("rekey", () => {
      if (!client.authenticated) socket.destroy();
    });
    const connection = new ClientConnection(this.#service, client, address, {
      authenticated: () => this.#startups.delete(socket),
      refused: () => this.#countRefusal(address),
    });
    this.#connections.add(connection);
    socket.on("close", () => this.#connections.delete(connection));
  }

  #countRefusal(address: string): void {
    const most = this.#service.start.settings.sshRefusalsPerAddress;
    if (most === 0) return;
    const network = networkOf(address);
    const time = Date.now();
    const { count, endsAt } = this.#refusals.count(network, time);
    if (count < most) return;
    this.#exhausted.add(network, endsAt, time);
    if (count > most) return;
    this.#service.log.warn(
      { network, until: new Date(endsAt).toISOString() },
      "too many refused SSH logins from a network",
    );
  }

  #isRefused(address: string): boolean {
    return this.#exhausted.exhaustedUntil(networkOf(address), Date.now()) !== undefined;
  }
}
