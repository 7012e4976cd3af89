import { createPublicKey, hash, verify } from "node:crypto";
import type { Duplex } from "node:stream";
import ssh2, {
  type AuthContext,
  type Connection,
  type PasswordAuthContext,
  type PublicKeyAuthContext,
} from "ssh2";
import type { DeviceKey } from "./identity.ts";
import { type Log, type SessionOptions, Sessions } from "./Sessions.ts";

/** Credentials that a connection may try. */
const TRIES = 6;

const ALGORITHMS = {
  kex: ["curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256"],
  serverHostKey: ["rsa-sha2-512", "rsa-sha2-256"],
  cipher: ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
  hmac: ["hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com"],
  compress: ["none"],
} satisfies ssh2.Algorithms;

/** Who gets in. */
export interface LoginChecks {
  /** Whether logins of that name are served at all. */
  served(login: string): boolean;
  passwordFits(password: string): Promise<boolean>;
  /** Has the service sign a text with the private key that has the fingerprint: base64. */
  sign(fingerprint: string, data: string): Promise<string>;
}

interface SshServerOptions extends Pick<SessionOptions, "user"> {
  /** Name of the device. */
  readonly name: string;
  readonly key: DeviceKey;
  readonly allowForwarding: boolean;
  readonly log: Log;
}

/** The SSH server of a device, over connections that its agent has picked up. */
export class SshServer {
  readonly #options: SshServerOptions;
  readonly #checks: LoginChecks;
  readonly #server: ssh2.Server;
  /** Open connections by the uids of their sessions. */
  readonly #open = new Map<string, Duplex>();

  constructor(options: SshServerOptions, checks: LoginChecks) {
    this.#options = options;
    this.#checks = checks;
    this.#server = new ssh2.Server(
      { hostKeys: [options.key.privateKey], algorithms: ALGORITHMS, keepaliveInterval: 30_000 },
      (client) => this.#connected(client),
    );
  }

  /** Becomes the SSH server of a connection. */
  accept(stream: Duplex, session: string): void {
    this.#open.set(session, stream);
    stream.on("close", () => {
      if (this.#open.get(session) === stream) this.#open.delete(session);
    });
    // The library takes any duplex stream, and asks TCP sockets for more.
    this.#server.injectSocket(stream as Parameters<ssh2.Server["injectSocket"]>[0]);
  }

  /** Ends the connection of a session. */
  close(session: string): void {
    this.#open.get(session)?.destroy();
  }

  /** Ends all connections. */
  stop(): void {
    for (const stream of this.#open.values()) stream.destroy();
  }

  #connected(client: Connection): void {
    const { log } = this.#options;
    let tries = 0;
    client.on("authentication", (context) => {
      if (context.method !== "none" && ++tries > TRIES) {
        client.end();
        return;
      }
      this.#admits(context).then(
        (admitted) => {
          const { method, username } = context;
          if (admitted) context.accept();
          else context.reject(["publickey", "password"]);
          if (method !== "none")
            log("info", admitted ? "login" : "login refused", { login: username, method });
        },
        (error: Error) => {
          log("warn", "a login could not be checked", { reason: error.message });
          context.reject(["publickey", "password"]);
        },
      );
    });
    client.on("error", (error) => log("warn", "an SSH connection broke off", { reason: error.message }));
    const { user, name, allowForwarding } = this.#options;
    client.on("ready", () => new Sessions(client, { user, device: name, allowForwarding, log }));
  }

  async #admits(context: AuthContext): Promise<boolean> {
    if (!this.#checks.served(context.username)) return false;
    if (context.method === "password") return this.#passwordFits(context);
    if (context.method === "publickey") return this.#isOfService(context);
    return false;
  }

  #passwordFits({ password }: PasswordAuthContext): Promise<boolean> {
    return this.#checks.passwordFits(password);
  }

  /** True for a key whose private half the service has, since only the service knows who may log in. */
  async #isOfService({ key, signature, blob, hashAlgo, username }: PublicKeyAuthContext): Promise<boolean> {
    const parsed = ssh2.utils.parseKey(key.data);
    if (parsed instanceof Error || parsed.type !== "ssh-rsa") return false;
    // Without a signature it is only a question.
    if (signature === undefined || blob === undefined) return true;
    if (hashAlgo !== "sha256" && hashAlgo !== "sha512") return false;
    if (parsed.verify(blob, signature, hashAlgo) !== true) return false;
    const fingerprint = hash("md5", key.data).match(/../g)?.join(":") ?? "";
    const data = JSON.stringify({ Username: username, Namespace: this.#options.name });
    const answer = Buffer.from(await this.#checks.sign(fingerprint, data), "base64");
    return verify("sha256", Buffer.from(data), createPublicKey(parsed.getPublicPEM()), answer);
  }
}
