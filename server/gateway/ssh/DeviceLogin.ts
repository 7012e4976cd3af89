import { randomBytes } from "node:crypto";
import { MINUTE } from "@gatehouse-access/sdk/times";
import type { Client } from "ssh2";
import { type AdmittedLogin, type Refusal, UnreachableError } from "../protocol.ts";
import { AgentClient } from "./AgentClient.ts";
import type { OpenLogin, ServiceClient } from "./ServiceClient.ts";
import type { SessionRecorder } from "./SessionRecorder.ts";

/**
 * Maximum number of refused requests that are logged for one login. The limit is necessary because a client can cause
 * any number of refusals.
 */
const REFUSALS_LOGGED = 20;
/**
 * Maximum number of characters of a reason in the log. The limit is necessary because some reasons contain text that
 * the client or the device sent.
 */
const REASON_MAX = 500;

interface LoginClient {
  /** Ends the client's connection and shows the reason. Called when the gateway or the device ends the login. */
  end(reason: string): void;
  /** Shows a message in the client's terminals. */
  notify(text: string): void;
}

/** A login to a device, with the recorder of its session. */
export class DeviceLogin implements OpenLogin {
  readonly uid = randomBytes(32).toString("hex");
  readonly admitted: AdmittedLogin;
  readonly recorder: SessionRecorder;
  readonly #service: ServiceClient;
  readonly #client: LoginClient;
  readonly #idle: IdleTimer;
  #refusals = 0;
  #agent: Promise<AgentClient> | undefined;
  #finished: Promise<void> | undefined;

  constructor(service: ServiceClient, admitted: AdmittedLogin, client: LoginClient) {
    this.admitted = admitted;
    const { recording, recordFailure } = admitted.device;
    const end = () => this.end("the session cannot be recorded");
    this.recorder = service.sessionWriter.open(this.uid, {
      recording: recording !== "none",
      onRecordFailure: recordFailure === "end" ? end : undefined,
    });
    this.#service = service;
    this.#client = client;
    const { idleMinutes } = admitted.device;
    this.#idle = new IdleTimer(idleMinutes * MINUTE, () =>
      this.end(`the session had no input or output for ${idleMinutes} minutes`),
    );
  }

  /** Called when the client has sent data to the device, or the device has sent data to the client. */
  noteActivity(): void {
    this.#idle.noteActivity();
  }

  /**
   * Logs in to the device with the service's own key. The client has already proved that it has a key that the policy
   * allows.
   * @returns undefined if the device refuses the service's key
   * @throws UnreachableError the device is not connected, or its agent does not respond
   */
  async byKey(): Promise<Client | undefined> {
    const [agent, key] = await Promise.all([this.#reach(), this.#service.call("agentKey", undefined)]);
    return this.#admitted(await agent.tryKey(key));
  }

  /**
   * Tries a password at the device.
   * @returns undefined if the device refuses the password
   * @throws UnreachableError see {@link byKey}
   */
  async byPassword(password: string): Promise<Client | undefined> {
    const agent = await this.#reach();
    return this.#admitted(await agent.tryPassword(password));
  }

  /** True if the login is ending or has ended. */
  get hasEnded(): boolean {
    return this.#finished !== undefined;
  }

  /** Logs that a request on the client's connection was refused. */
  logRefusal(reason: string): void {
    this.#refusals += 1;
    if (this.#refusals > REFUSALS_LOGGED) return;
    const { device, username, address } = this.admitted;
    const facts = {
      session: this.uid,
      device: device.uid,
      tenant: device.tenantId,
      username,
      address,
      reason: reason.slice(0, REASON_MAX),
    };
    this.#service.log.info(facts, "a request of an SSH client was refused");
  }

  end(reason: string): void {
    if (this.hasEnded) return;
    this.#client.end(reason);
    void this.finish();
  }

  notify(text: string): void {
    this.#client.notify(text);
  }

  /**
   * Ends the connection to the device, and closes the session after its last entries have been written. During a
   * database outage, the connection ends immediately, but the session is closed only after the outage.
   */
  finish(): Promise<void> {
    this.#finished ??= this.#finish();
    return this.#finished;
  }

  async #finish(): Promise<void> {
    this.#idle.stop();
    if (this.#agent === undefined) return;
    const at = new Date();
    try {
      await this.#agent.then(
        (agent) => agent.end(),
        // Ignore the error: the caller that tried to connect to the device receives it.
        () => {},
      );
      await this.recorder.finish();
      await this.#service.call("end", { uid: this.uid, at });
    } catch (error) {
      this.#service.log.error({ session: this.uid, err: error }, "cannot record the end of a session");
    } finally {
      this.#service.logins.delete(this.uid);
    }
  }

  #reach(): Promise<AgentClient> {
    this.#agent ??= this.#connect();
    return this.#agent;
  }

  async #connect(): Promise<AgentClient> {
    const { device, ...admitted } = this.admitted;
    const { username } = admitted;
    const { uid } = this;
    this.#service.logins.set(uid, this);
    const { uid: deviceUid, tenantId, ends } = device;
    await this.#service.call("begin", { ...admitted, uid, deviceUid, tenantId, ends });
    this.recorder.begun();
    const { ticket, hostKey } = await this.#service.call("reach", { session: uid });
    const stream = await this.#service.connect(ticket);
    const agent = new AgentClient({ stream, hostKey, username, onData: () => this.noteActivity() });
    if (this.#finished !== undefined) agent.end();
    return agent;
  }

  #admitted(client: Client | undefined): Client | undefined {
    if (client === undefined) return undefined;
    this.recorder.authenticated();
    this.#idle.start();
    client.on("close", () => this.end("the device hung up"));
    return client;
  }
}

/** A login attempt, without the credential itself. */
export interface LoginAttempt {
  readonly entry: "ssh" | "web";
  readonly credential: "key" | "password" | "none";
  /**
   * The user name of the attempt. For `ssh`, this is the user name that the client sends. For `web`, this is the login
   * name on the device.
   */
  readonly username: string;
  readonly address: string;
  readonly fingerprint?: string | undefined;
}

/** Reports a refused login to the operator, in the log and the metrics. */
export function reportRefusal(
  service: ServiceClient,
  attempt: LoginAttempt,
  { refused, reason }: { readonly refused: Refusal; readonly reason: string },
): void {
  const { entry, credential } = attempt;
  service.count({ entry, credential, result: refused });
  service.log.info({ ...attempt, refused, reason }, "login to a device refused");
}

/** Runs a login that the policy has allowed, and reports its result to the operator. */
export async function reportLogin<Result>(
  service: ServiceClient,
  { login, ...attempt }: LoginAttempt & { readonly login: DeviceLogin },
  logIn: () => Promise<Result | undefined>,
): Promise<Result | undefined> {
  const { device } = login.admitted;
  const begun = performance.now();
  const where = { device: device.uid, tenant: device.tenantId, session: login.uid };
  try {
    const result = await logIn();
    if (result === undefined) {
      const reason = "the device refuses the credential";
      reportRefusal(service, { ...attempt, ...where }, { refused: "password", reason });
      return undefined;
    }
    const { entry, credential } = attempt;
    const seconds = (performance.now() - begun) / 1000;
    service.count({ entry, credential, result: "accepted", seconds });
    service.log.info({ ...attempt, ...where }, "login to a device");
    return result;
  } catch (error) {
    if (login.hasEnded) {
      service.log.info({ ...attempt, ...where }, "login to a device ended before the device was reached");
    } else if (error instanceof UnreachableError) {
      reportRefusal(
        service,
        { ...attempt, ...where },
        { refused: "unreachable", reason: `the device ${error.message}` },
      );
    }
    throw error;
  }
}

/**
 * A timer that calls a function after a period without activity. Recording an activity does not restart the timer, so
 * frequent activity costs little.
 */
export class IdleTimer {
  readonly #limit: number;
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;
  #activeAt = 0;

  /** @param limit maximum time without activity, in milliseconds. If 0, the function is never called. */
  constructor(limit: number, onIdle: () => void) {
    this.#limit = limit;
    this.#onIdle = onIdle;
  }

  start(): void {
    this.noteActivity();
    if (this.#limit > 0) this.#wait(this.#limit);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  noteActivity(): void {
    this.#activeAt = performance.now();
  }

  #wait(time: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#activeAt + this.#limit - performance.now();
      if (left > 0) this.#wait(left);
      else this.#onIdle();
    }, time).unref();
  }
}
