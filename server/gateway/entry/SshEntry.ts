import { once } from "node:events";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import ssh2 from "ssh2";
import { addressMatcher, networkOf, normalAddress } from "../../addresses.ts";
import { Exhausted, MemoryCounts } from "../../http/memoryCounts.ts";
import { OperatorError } from "../../OperatorError.ts";
import type { SshConfig } from "../../settings/readConfig.ts";
import type { Gateway } from "../Gateway.ts";
import { ClientConnection } from "./ClientConnection.ts";
import type { HostKey } from "./hostKey.ts";
import { readProxied } from "./proxyProtocol.ts";
import { Startups } from "./Startups.ts";

/** How often a silent client is asked whether it is there, in milliseconds, and how many times before it counts as gone. */
const KEEP_ALIVE = { keepaliveInterval: 30_000, keepaliveCountMax: 3 };

/** What clients may choose from: nothing by SHA-1 or CBC, and strict key exchange, against prefix truncation. */
const ALGORITHMS = {
  kex: [
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
    "diffie-hellman-group16-sha512",
    "diffie-hellman-group18-sha512",
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
} satisfies ssh2.Algorithms;

/** Listens for SSH clients who want to log in to devices. */
export class SshEntry {
  readonly #gateway: Gateway;
  readonly #server: ssh2.Server;
  readonly #listener: NetServer;
  readonly #startups: Startups;
  readonly #refusals = new MemoryCounts();
  readonly #exhausted = new Exhausted();
  readonly #isTrusted: (address: string) => boolean;
  readonly #sockets = new Set<Socket>();
  /** The addresses of clients. The library knows the end of a connection only, which a client can use twice. */
  readonly #addresses = new WeakMap<Socket, string>();

  constructor(gateway: Gateway, hostKey: HostKey) {
    const { settings } = gateway.services;
    this.#gateway = gateway;
    this.#startups = new Startups(settings.ssh.startupsPerAddress);
    this.#isTrusted = addressMatcher(settings.trustedProxies);
    this.#server = new ssh2.Server(
      { hostKeys: [hostKey.pem], ident: "Gatehouse", algorithms: ALGORITHMS, ...KEEP_ALIVE },
      (client) => this.#accept(client),
    );
    this.#listener = createServer({ noDelay: true, keepAlive: true }, (socket) => void this.#begin(socket));
  }

  /**
   * @returns the port
   * @throws OperatorError the address cannot be listened on
   */
  async listen({ host, port }: Pick<SshConfig, "host" | "port">): Promise<number> {
    this.#listener.listen(port, host);
    try {
      await once(this.#listener, "listening");
    } catch (error) {
      const reason = (error as Error).message;
      throw new OperatorError(`Cannot listen on ${host} port ${port} (--ssh-host, --ssh-port): ${reason}`);
    }
    const address = this.#listener.address();
    return typeof address === "object" && address !== null ? address.port : port;
  }

  /** Accepts no more clients. Those who are logged in stay. */
  stop(): void {
    this.#listener.close();
    this.#startups.clear();
  }

  /** Ends all connections. */
  end(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async #begin(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    const peer = normalAddress(socket.remoteAddress ?? "") ?? "";
    let address: string = peer;
    if (this.#isTrusted(peer)) {
      try {
        address = (await readProxied(socket)) ?? peer;
      } catch (error) {
        this.#gateway
          .log()
          .warn({ peer, reason: (error as Error).message }, "PROXY protocol of a trusted proxy");
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

  #accept(client: ssh2.Connection): void {
    // First of all: an error without a listener ends the process.
    client.on("error", () => {});
    const { _sock: socket } = client as unknown as { readonly _sock: Socket };
    const address = this.#addresses.get(socket);
    if (address === undefined) {
      socket.destroy();
      return;
    }
    client.once("handshake", () => this.#startups.shookHands(socket));
    new ClientConnection(this.#gateway, client, address, {
      authenticated: () => this.#startups.delete(socket),
      refused: () => this.#countRefusal(address),
    });
  }

  #countRefusal(address: string): void {
    const { settings, now } = this.#gateway.services;
    const most = settings.ssh.refusalsPerAddress;
    if (most === 0) return;
    const network = networkOf(address);
    const time = now().getTime();
    const { count, endsAt } = this.#refusals.count(network, time);
    if (count < most) return;
    this.#exhausted.add(network, endsAt, time);
    if (count > most) return;
    this.#gateway
      .log()
      .warn({ network, until: new Date(endsAt).toISOString() }, "too many refused SSH logins of an address");
  }

  #isRefused(address: string): boolean {
    return this.#exhausted.endOf(networkOf(address), this.#gateway.services.now().getTime()) !== undefined;
  }
}
