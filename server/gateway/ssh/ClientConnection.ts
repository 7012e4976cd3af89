import type { AuthContext, Client, Connection, PasswordAuthContext, PublicKeyAuthContext } from "ssh2";
import { type Admission, type Refusal, type SshAddress, UnreachableError } from "../protocol.ts";
import { type Brake, bound, socketOf } from "./bounds.ts";
import { Channels } from "./Channels.ts";
import { DeviceLogin, type LoginAttempt, reportLogin, reportRefusal } from "./DeviceLogin.ts";
import type { ServiceClient } from "./ServiceClient.ts";
import { fingerprintOf, isValidSignature } from "./signature.ts";

/** Maximum number of passwords and signatures that a client can try on one connection. */
const TRIES = 6;
/** Maximum number of key queries without a signature that a client can send on one connection. */
const QUERIES = 40;
/** Maximum time, in milliseconds, for a client to disconnect after its login has ended. */
const PARTING = 500;
/** Maximum length of a client's user name, in characters. Names of devices and namespaces are shorter. */
const USER_NAME_MAX = 512;
/** Maximum length of a login name, in characters. The API has the same limit. */
const LOGIN_MAX = 255;
const METHODS: ("publickey" | "password")[] = ["publickey", "password"];

/** Callbacks with which a connection notifies the listener. */
interface ConnectionEvents {
  authenticated(): void;
  /** Called when a login was refused. */
  refused(): void;
}

/** An SSH client's connection: first its login attempts, then its channels. */
export class ClientConnection {
  readonly #service: ServiceClient;
  readonly #client: Connection;
  readonly #address: string;
  readonly #events: ConnectionEvents;
  readonly #brake: Brake;
  #sshAddress: SshAddress | undefined;
  #tries = 0;
  #queries = 0;
  /** The last key query without a signature that was refused and has not been reported yet. */
  #unproved: (LoginAttempt & { readonly refused: Refusal; readonly reason: string }) | undefined;
  #login: DeviceLogin | undefined;
  #device: Promise<Client> | undefined;
  #channels: Channels | undefined;

  /** @param address the client's normalized address */
  constructor(service: ServiceClient, client: Connection, address: string, events: ConnectionEvents) {
    this.#service = service;
    this.#client = client;
    this.#address = address;
    this.#events = events;
    this.#brake = bound(
      client,
      () => client.authenticated,
      () => this.#login?.noteActivity(),
    );
    client.on("authentication", (context) => {
      this.#authenticate(context).catch((error: unknown) => {
        if (!(error instanceof UnreachableError)) {
          service.log.error({ err: error }, "cannot decide an SSH login");
        }
        context.reject(METHODS);
      });
    });
    client.on("ready", () => this.#ready());
    // Close the connection, because the library closes only the sending direction after an error. Otherwise the
    // channels of a client that has disappeared would stay open.
    client.on("error", (error) => this.#failed(error));
    client.on("close", () => this.#closed());
  }

  async #authenticate(context: AuthContext): Promise<void> {
    this.#sshAddress ??= readSshAddress(context.username);
    const { method } = context;
    if (method === "publickey") await this.#byKey(context);
    else if (method === "password") await this.#byPassword(context);
    else context.reject(METHODS);
  }

  async #byKey(context: PublicKeyAuthContext): Promise<void> {
    const { key, signature, blob, hashAlgo } = context;
    const isQuery = signature === undefined || blob === undefined;
    if (this.#exceedsLimit(isQuery)) return;
    const fingerprint = fingerprintOf(key.data);
    const attempt = { ...this.#attempt(context, "key"), fingerprint };
    if (!isQuery && !isValidSignature({ key: key.data, signature, signed: blob, digest: hashAlgo })) {
      this.#refuse(context, attempt, {
        refused: "signature",
        reason: "the signature is wrong or uses SHA-1",
      });
      return;
    }
    const admission = await this.#admit({ key: key.data, firewall: !isQuery });
    if ("refused" in admission) {
      if (!isQuery) this.#refuse(context, attempt, admission);
      else {
        this.#unproved = { ...attempt, ...admission };
        context.reject(METHODS);
      }
    } else if (isQuery) {
      // In its response to a key query, the library sends the type of the key instead of the algorithm. Dropbear
      // interprets the type as the algorithm, and would sign with SHA-1.
      if (key.algo === "ssh-rsa" && hashAlgo !== undefined)
        key.algo = `rsa-sha2-${hashAlgo.replace("sha", "")}`;
      context.accept();
    } else {
      this.#begin(admission, attempt, key.data);
      context.accept();
    }
  }

  async #byPassword(context: PasswordAuthContext): Promise<void> {
    if (this.#exceedsLimit(false)) return;
    const attempt = this.#attempt(context, "password");
    const admission = await this.#admit({ key: undefined, firewall: true });
    if ("refused" in admission) {
      this.#refuse(context, attempt, admission);
      return;
    }
    const login = this.#newLogin(admission, undefined);
    const device = await reportLogin(this.#service, { ...attempt, login }, () =>
      login.byPassword(context.password),
    );
    if (device === undefined) {
      this.#events.refused();
      context.reject(METHODS);
      return;
    }
    this.#device = Promise.resolve(device);
    context.accept();
  }

  /** Counts a login attempt. Ends the connection and returns true if the client has made too many attempts. */
  #exceedsLimit(isQuery: boolean): boolean {
    if (isQuery) this.#queries += 1;
    else this.#tries += 1;
    if (this.#tries <= TRIES && this.#queries <= QUERIES) return false;
    this.#leave();
    return true;
  }

  async #admit(of: { readonly key: Buffer | undefined; readonly firewall: boolean }): Promise<Admission> {
    const address = this.#sshAddress;
    if (address === undefined)
      return { refused: "address", reason: "the user name does not have the form login@namespace.device" };
    return this.#service.call("admit", { ...address, ...of, address: this.#address });
  }

  #attempt({ username }: AuthContext, credential: "key" | "password"): LoginAttempt {
    return { entry: "ssh", credential, username: username.slice(0, 255), address: this.#address };
  }

  #refuse(
    context: AuthContext,
    attempt: LoginAttempt,
    admission: Extract<Admission, { refused: Refusal }>,
  ): void {
    this.#unproved = undefined;
    reportRefusal(this.#service, attempt, admission);
    this.#events.refused();
    context.reject(METHODS);
  }

  /**
   * Returns the login of this connection. Creates the login if necessary.
   * @throws UnreachableError the SSH address refers to a different device than in the previous attempt
   */
  #newLogin({ device }: Exclude<Admission, { refused: Refusal }>, key: Buffer | undefined): DeviceLogin {
    const before = this.#login?.admitted.device.uid ?? device.uid;
    if (before !== device.uid) throw new UnreachableError("was renamed during the login");
    // A login by key gets its own session. Password attempts share a session, because the agent can check several
    // passwords on one connection.
    if (key !== undefined) void this.#login?.finish();
    if (this.#login !== undefined && key === undefined) return this.#login;
    const admitted = { device, key, username: this.#sshAddress?.login ?? "", address: this.#address };
    this.#login = new DeviceLogin(
      this.#service,
      { ...admitted, type: "none" },
      { end: (reason) => this.#end(reason), notify: (text) => this.#channels?.notify(text) },
    );
    return this.#login;
  }

  /**
   * Starts a login by key. The policy has already allowed the login, so the client does not wait for the connection to
   * the device.
   */
  #begin(admission: Exclude<Admission, { refused: Refusal }>, attempt: LoginAttempt, key: Buffer): void {
    const login = this.#newLogin(admission, key);
    const device = reportLogin(this.#service, { ...attempt, login }, () => login.byKey()).then((client) => {
      if (client === undefined) throw new UnreachableError("does not accept the service's key");
      return client;
    });
    device.catch((error: unknown) => {
      // Do not log an UnreachableError, because the client's channels also receive the error and show it.
      if (error instanceof UnreachableError) return;
      this.#service.log.error({ session: login.uid, err: error }, "cannot reach a device");
    });
    this.#device = device;
  }

  /** Number of bytes that are waiting to be forwarded to the device or to the client. */
  get waiting(): number {
    return socketOf(this.#client).writableLength + (this.#channels?.waiting ?? 0);
  }

  #failed(error: Error): void {
    // Do not log failures before login, because any client could fill the log. The listener counts aborted key
    // exchanges instead.
    if (this.#client.authenticated) {
      const facts = { address: this.#address, session: this.#login?.uid, reason: error.message };
      this.#service.log.info(facts, "the SSH connection of a client failed");
    }
    this.#leave();
  }

  /** Closes the connection at once. */
  destroy(): void {
    socketOf(this.#client).destroy();
  }

  /** Ends the connection. Closes the socket if the client does not close the connection within `PARTING`. */
  #leave(): void {
    this.#client.end();
    setTimeout(() => this.destroy(), PARTING).unref();
  }

  #ready(): void {
    if (this.#login === undefined || this.#device === undefined) {
      this.#leave();
      return;
    }
    this.#events.authenticated();
    this.#channels = new Channels(this.#client, this.#login, this.#device, this.#service, this.#brake);
  }

  #end(reason: string): void {
    // If the connection has no channels, as with a shared connection without sessions, it cannot show the reason. So
    // end the connection immediately.
    if (this.#channels?.end(reason) === 0) {
      this.#leave();
      return;
    }
    // Clients disconnect by themselves when their channels have ended. Until then, they can read the reason.
    setTimeout(() => this.#leave(), PARTING).unref();
  }

  #closed(): void {
    if (this.#channels === undefined && this.#unproved !== undefined) {
      const { refused, reason, ...attempt } = this.#unproved;
      reportRefusal(this.#service, attempt, { refused, reason });
      this.#events.refused();
    }
    this.#channels?.closed();
    void this.#login?.finish();
  }
}

/**
 * Parses the user name of an SSH client: `login@namespace.device` or `login@uid`. Device names may contain dots.
 * @returns undefined if the user name has neither form
 */
function readSshAddress(text: string): SshAddress | undefined {
  if (text.length > USER_NAME_MAX) return undefined;
  const [, login, place] = /^([^@]+)@([^@]+)$/s.exec(text) ?? [];
  if (login === undefined || place === undefined || !isPrintable(text)) return undefined;
  if (login.length > LOGIN_MAX) return undefined;
  const dot = place.indexOf(".");
  if (dot === -1) return { login, device: { uid: place } };
  const device = { domain: place.slice(0, dot), name: place.slice(dot + 1) };
  return device.domain === "" || device.name === "" ? undefined : { login, device };
}

const isPrintable = (text: string): boolean => !/[\p{Cc}\p{Cs}]/u.test(text);
