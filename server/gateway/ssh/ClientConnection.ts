import type { AuthContext, Client, Connection, PasswordAuthContext, PublicKeyAuthContext } from "ssh2";
import { type Admission, type Refusal, UnreachableError } from "../protocol.ts";
import { type Brake, bound, socketOf } from "./bounds.ts";
import { Channels } from "./Channels.ts";
import { DeviceLogin } from "./DeviceLogin.ts";
import { type LoginAttempt, reportLogin, reportRefusal } from "./reportLogin.ts";
import type { ServiceClient } from "./ServiceClient.ts";
import { fingerprintOf, isValidSignature } from "./signature.ts";
import { readSshAddress, type SshAddress } from "./sshAddress.ts";

/** Passwords and signatures that a connection may try. */
const TRIES = 6;
/** Keys that a connection may ask about. */
const QUESTIONS = 40;
/** How long a client whose login has ended may take to leave, in milliseconds. */
const PARTING = 500;
const METHODS: ("publickey" | "password")[] = ["publickey", "password"];

/** What the listener wants to know of a connection. */
export interface ConnectionEvents {
  authenticated(): void;
  /** A login was refused. */
  refused(): void;
}

/** An SSH client's connection: its attempts to log in, then its channels. */
export class ClientConnection {
  readonly #service: ServiceClient;
  readonly #client: Connection;
  readonly #address: string;
  readonly #events: ConnectionEvents;
  readonly #brake: Brake;
  #sshAddress: SshAddress | undefined;
  #tries = 0;
  #questions = 0;
  /** The last refusal of a key that was only asked about. */
  #unproved: (LoginAttempt & { readonly refused: Refusal; readonly reason: string }) | undefined;
  #login: DeviceLogin | undefined;
  #device: Promise<Client> | undefined;
  #channels: Channels | undefined;

  /** @param address the client's, normalized */
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
          service.log.error({ err: error }, "an SSH login could not be decided");
        }
        context.reject(METHODS);
      });
    });
    client.on("ready", () => this.#ready());
    // The library only ends its own direction; a client that is gone would keep its channels.
    client.on("error", (error) => this.#brokeOff(error));
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
    const asks = signature === undefined || blob === undefined;
    if (this.#isTooMuch(asks)) return;
    const fingerprint = fingerprintOf(key.data);
    const attempt = { ...this.#attempt(context, "key"), fingerprint };
    if (!asks && !isValidSignature({ key: key.data, signature, signed: blob, digest: hashAlgo })) {
      this.#refuse(context, attempt, {
        refused: "signature",
        reason: "the signature is wrong, or made with SHA-1",
      });
      return;
    }
    const admission = await this.#admit({ key: key.data, firewall: !asks });
    if ("refused" in admission) {
      if (!asks) this.#refuse(context, attempt, admission);
      else {
        this.#unproved = { ...attempt, ...admission };
        context.reject(METHODS);
      }
    } else if (asks) {
      // The library answers with the name of the key's type: Dropbear takes it for the algorithm, and signs with SHA-1.
      if (key.algo === "ssh-rsa" && hashAlgo !== undefined)
        key.algo = `rsa-sha2-${hashAlgo.replace("sha", "")}`;
      context.accept();
    } else {
      this.#begin(admission, attempt, key.data);
      context.accept();
    }
  }

  async #byPassword(context: PasswordAuthContext): Promise<void> {
    if (this.#isTooMuch(false)) return;
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

  /** Ends a connection that tries too often. */
  #isTooMuch(asks: boolean): boolean {
    if (asks) this.#questions += 1;
    else this.#tries += 1;
    if (this.#tries <= TRIES && this.#questions <= QUESTIONS) return false;
    this.#leave();
    return true;
  }

  async #admit(of: { readonly key: Buffer | undefined; readonly firewall: boolean }): Promise<Admission> {
    const address = this.#sshAddress;
    if (address === undefined)
      return { refused: "address", reason: "not of the form login@namespace.device" };
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

  /** @throws UnreachableError the address names another device than with the try before */
  #newLogin({ device }: Exclude<Admission, { refused: Refusal }>, key: Buffer | undefined): DeviceLogin {
    const before = this.#login?.admitted.device.uid ?? device.uid;
    if (before !== device.uid) throw new UnreachableError("has another name now");
    // A key opens a session of its own. Passwords share one: the agent may be asked again.
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

  /** The policy has decided, so the client need not wait until the device is reached. */
  #begin(admission: Exclude<Admission, { refused: Refusal }>, attempt: LoginAttempt, key: Buffer): void {
    const login = this.#newLogin(admission, key);
    const device = reportLogin(this.#service, { ...attempt, login }, () => login.byKey()).then((client) => {
      if (client === undefined) throw new UnreachableError("does not let the service in");
      return client;
    });
    device.catch((error: unknown) => {
      // The channels hear of it too.
      if (error instanceof UnreachableError) return;
      this.#service.log.error({ session: login.uid, err: error }, "a device could not be reached");
    });
    this.#device = device;
  }

  /** Bytes that wait to be passed on to the device or the client. */
  get waiting(): number {
    return socketOf(this.#client).writableLength + (this.#channels?.waiting ?? 0);
  }

  #brokeOff(error: Error): void {
    // Before login, the listener counts broken exchanges; a line for each would let any client fill the log.
    if (this.#client.authenticated) {
      const facts = { address: this.#address, session: this.#login?.uid, reason: error.message };
      this.#service.log.info(facts, "the SSH connection of a client broke off");
    }
    this.#leave();
  }

  /** Ends it at once. */
  destroy(): void {
    socketOf(this.#client).destroy();
  }

  /** Ends it, and soon after also where the client does not take part. */
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
    this.#channels = new Channels(
      this.#client,
      this.#login,
      this.#device,
      this.#service.start.settings,
      this.#brake,
    );
  }

  #end(reason: string): void {
    // Without channels, as on a shared connection, no client reads a reason.
    if (this.#channels?.end(reason) === 0) {
      this.#leave();
      return;
    }
    // Clients leave by themselves when their channels end, and have read the reason then.
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
