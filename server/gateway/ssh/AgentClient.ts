import type { Duplex } from "node:stream";
import type { AnyAuthMethod, AuthHandlerMiddleware, Client } from "ssh2";
import { UnreachableError } from "../protocol.ts";
import { bound } from "./bounds.ts";
import { ssh2 } from "./ssh2.ts";

/**
 * Maximum time, in milliseconds, for an agent to complete the key exchange. The same limit applies to the check of a
 * credential.
 */
const AGENT_TIMEOUT = 20_000;

/** Algorithms for connections to agents, whose host keys are RSA keys. */
const ALGORITHMS = {
  kex: [
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
    "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384",
    "ecdh-sha2-nistp521",
  ],
  serverHostKey: ["rsa-sha2-512", "rsa-sha2-256"],
  cipher: ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
} as const;

interface AgentLogin {
  /** The connection to the agent. The agent expects SSH on this connection. */
  readonly stream: Duplex;
  /** The agent's expected public key, in SSH's wire format. */
  readonly hostKey: Buffer;
  readonly username: string;
  /** Called when the agent sends data on a channel. */
  readonly onData?: () => void;
}

type Next = (method: AnyAuthMethod | false) => void;

/** A client of the agent's SSH server. The client can try several credentials one after another. */
export class AgentClient {
  readonly #client = new ssh2.Client();
  readonly #stream: Duplex;
  readonly #username: string;
  readonly #ended: Promise<never>;
  #next = Promise.withResolvers<Next>();

  constructor({ stream, hostKey, username, onData }: AgentLogin) {
    this.#stream = stream;
    this.#username = username;
    const client = this.#client;
    const { promise, reject } = Promise.withResolvers<never>();
    this.#ended = promise;
    // Ignore the connection error: callers that wait for the login receive it, and after the login no caller waits.
    promise.catch(() => {});
    client.on("error", () => stream.destroy());
    client.on("error", (error) => reject(new UnreachableError(`aborted the login: ${error.message}`)));
    client.on("close", () => reject(new UnreachableError("hung up")));
    const onCredentialRequest = (_left: unknown, _partial: unknown, next: Next) => this.#next.resolve(next);
    client.connect({
      sock: stream,
      username,
      hostVerifier: (key: Buffer) => {
        const isDevice = key.equals(hostKey);
        if (!isDevice) reject(new UnreachableError("does not have the device's private key"));
        return isDevice;
      },
      algorithms: { ...ALGORITHMS, kex: [...ALGORITHMS.kex] } as never,
      authHandler: onCredentialRequest as AuthHandlerMiddleware,
      readyTimeout: 0,
    });
    // Treat the agent as authenticated, because the service checked the agent's token when the tunnel was opened.
    bound(client, () => true, onData);
  }

  /**
   * Resolves when the agent has proven that it has the private key that matches the expected public key.
   * @throws UnreachableError the agent does not answer, or has a different key
   */
  async handshake(): Promise<void> {
    // The SSH library requests a credential when the key exchange is complete.
    await this.#inTime(this.#next.promise);
  }

  /**
   * Tries a private key (PEM).
   * @returns the logged-in client; undefined if the agent refuses the key
   * @throws UnreachableError the agent does not answer, or does not have the device's private key
   */
  tryKey(key: string): Promise<Client | undefined> {
    return this.#try({ type: "publickey", username: this.#username, key });
  }

  /** Tries a password. Otherwise like {@link tryKey}. */
  tryPassword(password: string): Promise<Client | undefined> {
    return this.#try({ type: "password", username: this.#username, password });
  }

  /** Ends the connection. */
  end(): void {
    this.#client.destroy();
    // The library's `destroy` does nothing if one direction of the stream has already ended.
    this.#stream.destroy();
  }

  async #try(method: AnyAuthMethod): Promise<Client | undefined> {
    const client = this.#client;
    const attempt = async () => {
      const next = await this.#next.promise;
      this.#next = Promise.withResolvers();
      const ready = new Promise<Client>((resolve) => void client.once("ready", () => resolve(client)));
      const refused = this.#next.promise.then(() => undefined);
      next(method);
      return Promise.race([ready, refused]);
    };
    return this.#inTime(attempt());
  }

  async #inTime<Result>(result: Promise<Result>): Promise<Result> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new UnreachableError("did not answer in time")), AGENT_TIMEOUT);
    try {
      return await Promise.race([result, this.#ended, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
