import { createPublicKey, hash, verify } from "node:crypto";
import type { Duplex } from "node:stream";
import type {
  Algorithms,
  AuthContext,
  Connection,
  PasswordAuthContext,
  PublicKeyAuthContext,
  Server,
} from "ssh2";
import type { DeviceKey } from "./identity.ts";
import { type ChannelOptions, serveChannels } from "./SessionChannel.ts";
import { ssh2 } from "./ssh2.ts";

/** Maximum number of failed login attempts in one connection. */
const TRIES = 6;
/** Maximum time, in milliseconds, for a client to log in. */
const LOGIN_TIMEOUT = 120_000;

const ALGORITHMS = {
  kex: ["curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256"],
  serverHostKey: ["rsa-sha2-512", "rsa-sha2-256"],
  cipher: ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
  hmac: ["hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"],
  compress: ["none"],
} satisfies Algorithms;

/** The checks that decide whether a client can log in. */
interface LoginChecks {
  /** Returns true if the device accepts logins with this login name. */
  served(login: string): boolean;
  passwordFits(password: string): Promise<boolean>;
  /**
   * Returns the pinned public key of the service in SSH's wire format. The service uses this key to log in to the
   * device. Returns undefined if the service announces no key. Such a service uses a new key for each login.
   */
  serviceKey(): Buffer | undefined;
  /** Returns the name under which the device is enrolled at the service. */
  device(): string;
  /**
   * Requests a signature of `data` from the service. The service signs with the private key that has this fingerprint.
   * Returns the signature in base64.
   */
  sign(fingerprint: string, data: string): Promise<string>;
}

/**
 * The SSH server of a device. For each login, the agent opens a WebSocket connection to the service, and this server
 * serves SSH on the connection.
 */
export class SshServer {
  readonly #options: ChannelOptions;
  readonly #checks: LoginChecks;
  readonly #server: Server;
  readonly #open = new Set<Duplex>();
  /** The latest connection of each session, by the uid of the session. */
  readonly #bySession = new Map<string, Duplex>();

  constructor(key: DeviceKey, options: ChannelOptions, checks: LoginChecks) {
    this.#options = options;
    this.#checks = checks;
    this.#server = new ssh2.Server(
      {
        hostKeys: [key.privateKey],
        ident: "Gatehouse-Agent",
        algorithms: ALGORITHMS,
        keepaliveInterval: 30_000,
      },
      (client) => this.#connected(client),
    );
  }

  /** Serves SSH on a connection. */
  accept(stream: Duplex, session: string): void {
    this.#open.add(stream);
    this.#bySession.set(session, stream);
    stream.on("close", () => {
      this.#open.delete(stream);
      if (this.#bySession.get(session) === stream) this.#bySession.delete(session);
    });
    // `injectSocket` accepts any duplex stream, but its declared parameter type is a TCP socket.
    this.#server.injectSocket(stream as Parameters<Server["injectSocket"]>[0]);
  }

  /** Ends the connection of a session. */
  close(session: string): void {
    this.#bySession.get(session)?.destroy();
  }

  /** Ends all connections. */
  stop(): void {
    for (const stream of this.#open) stream.destroy();
  }

  #connected(client: Connection): void {
    const { log } = this.#options;
    const timer = setTimeout(() => client.end(), LOGIN_TIMEOUT);
    client.on("close", () => clearTimeout(timer));
    client.on("error", (error) => log("warn", "an SSH connection failed", { reason: error.message }));
    let wrong = 0;
    client.on("authentication", async (context) => {
      const { method, username } = context;
      const authenticated = await this.#authenticates(context).catch((error: Error) => {
        log("warn", "cannot check a login", { login: username, method, reason: error.message });
        return false;
      });
      const isQuery = isKey(context) && context.signature === undefined;
      if (method !== "none" && !(authenticated && isQuery)) {
        log("info", authenticated ? "login" : "login refused", { login: username, method });
      }
      if (authenticated) {
        // Register the handlers before the client can open a channel.
        if (!isQuery) this.#serve(client, username, timer);
        context.accept();
        return;
      }
      if (method !== "none") wrong += 1;
      if (wrong < TRIES) context.reject(["publickey", "password"]);
      else client.end();
    });
  }

  #serve(client: Connection, login: string, timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    serveChannels({ client, login, device: this.#checks.device() }, this.#options);
  }

  async #authenticates(context: AuthContext): Promise<boolean> {
    if (!this.#checks.served(context.username)) return false;
    if (context.method === "password") return this.#passwordFits(context);
    return isKey(context) ? this.#isServiceKey(context) : false;
  }

  #passwordFits({ password }: PasswordAuthContext): Promise<boolean> {
    return this.#checks.passwordFits(password);
  }

  /**
   * Returns true if the client's key belongs to the service, that is, if the service can sign with the matching private
   * key. The agent then accepts the login, since the service has already authorized it.
   */
  async #isServiceKey({ key, signature, blob, hashAlgo, username }: PublicKeyAuthContext): Promise<boolean> {
    const parsed = ssh2.utils.parseKey(key.data);
    if (parsed instanceof Error || parsed.type !== "ssh-rsa") return false;
    const pinned = this.#checks.serviceKey();
    if (pinned !== undefined && !pinned.equals(key.data)) return false;
    // A request without a signature only asks if the server would accept the key (RFC 4252, section 7).
    if (signature === undefined || blob === undefined) return true;
    if (hashAlgo !== "sha256" && hashAlgo !== "sha512") return false;
    if (parsed.verify(blob, signature, hashAlgo) !== true) return false;
    const fingerprint = hash("md5", key.data).match(/../g)?.join(":") ?? "";
    const data = JSON.stringify({ Username: username, Namespace: this.#checks.device() });
    const serviceSignature = Buffer.from(await this.#checks.sign(fingerprint, data), "base64");
    return verify("sha256", Buffer.from(data), createPublicKey(parsed.getPublicPEM()), serviceSignature);
  }
}

const isKey = (context: AuthContext): context is PublicKeyAuthContext => context.method === "publickey";
