import { randomBytes } from "node:crypto";
import type { FastifyBaseLogger } from "fastify";
import type { Client } from "ssh2";
import { sql } from "../../db/sql.ts";
import { inSqlTransaction } from "../../db/transaction.ts";
import { beginSession } from "../../features/sessions/entry.ts";
import type { Services } from "../../services.ts";
import type { Gateway } from "../Gateway.ts";
import { AgentClient } from "./AgentClient.ts";
import type { AdmittedDevice } from "./admit.ts";
import { SessionLedger } from "./SessionLedger.ts";

/** A login that the policy has let through. */
export interface AdmittedLogin {
  readonly device: AdmittedDevice;
  /** Login name on the device. */
  readonly username: string;
  /** The client's address. */
  readonly address: string;
  /** What kind of session it is, as far as that is known. */
  readonly type: "none" | "web";
}

/** A login at a device, with its session in the ledger. */
export class DeviceLogin {
  readonly uid = randomBytes(32).toString("hex");
  readonly admitted: AdmittedLogin;
  readonly ledger: SessionLedger;
  readonly #gateway: Gateway;
  readonly #services: Services;
  readonly #onEnd: (reason: string) => void;
  readonly #log: () => FastifyBaseLogger;
  #agent: Promise<AgentClient> | undefined;
  #finished: Promise<void> | undefined;

  /** @param onEnd called when the login ends although its client has not ended it */
  constructor(gateway: Gateway, admitted: AdmittedLogin, onEnd: (reason: string) => void) {
    const { services, log } = gateway;
    const { sessionRecord } = admitted.device.namespace;
    const recording = sessionRecord && services.settings.edition !== "community";
    this.admitted = admitted;
    this.ledger = new SessionLedger(services, this.uid, recording, log);
    this.#gateway = gateway;
    this.#services = services;
    this.#onEnd = onEnd;
    this.#log = log;
  }

  /**
   * Logs in with the service's own key: the client has proved that it has a key which the policy admits.
   * @throws UnreachableError the device is not connected, or its agent does not let the service in
   */
  async byKey(): Promise<Client | undefined> {
    const [agent, key] = await Promise.all([this.#reach(), this.#gateway.agentKey.pem()]);
    return this.#let(await agent.tryKey(key));
  }

  /**
   * Tries a password.
   * @returns undefined if the device refuses it
   * @throws UnreachableError see {@link byKey}
   */
  async byPassword(password: string): Promise<Client | undefined> {
    const agent = await this.#reach();
    return this.#let(await agent.tryPassword(password));
  }

  /** True once the client has left, or is told to. */
  get hasEnded(): boolean {
    return this.#finished !== undefined;
  }

  /** Ends it, from the service's side: the client is told. */
  end(reason: string): void {
    this.#onEnd(reason);
    void this.finish();
  }

  /** Ends the connection to the device, and closes the session. */
  finish(): Promise<void> {
    this.#finished ??= this.#finish();
    return this.#finished;
  }

  async #finish(): Promise<void> {
    this.#gateway.live.delete(this);
    if (this.#agent === undefined) return;
    try {
      await this.#agent.then(
        (agent) => agent.end(),
        // Whoever tried to reach the device has heard of it.
        () => {},
      );
      await this.ledger.finish();
      await endSession(this.#services, this.uid);
    } catch (error) {
      this.#log().error({ session: this.uid, err: error }, "the end of a session could not be written");
    }
  }

  #reach(): Promise<AgentClient> {
    this.#agent ??= this.#connect();
    return this.#agent;
  }

  async #connect(): Promise<AgentClient> {
    const { device, username, address, type } = this.admitted;
    await beginSession(this.#services, {
      uid: this.uid,
      deviceUid: device.uid,
      username,
      ipAddress: address,
      type,
      term: "none",
      instanceId: this.#gateway.instanceId,
    });
    if (this.#finished === undefined) this.#gateway.live.add(this);
    const stream = await this.#gateway.reach(device.uid, device.instanceId);
    const { publicKey } = device;
    const agent = new AgentClient({ stream, session: this.uid, publicKey, username });
    if (this.#finished !== undefined) agent.end();
    return agent;
  }

  #let(client: Client | undefined): Client | undefined {
    if (client === undefined) return undefined;
    this.ledger.authenticated();
    client.on("close", () => {
      if (this.#finished === undefined) this.end("the device hung up");
    });
    return client;
  }
}

/** A session that was closed keeps its time. */
async function endSession(services: Services, uid: string): Promise<void> {
  await inSqlTransaction(services, "sessions", (tx) =>
    tx.$executeRaw(
      sql`UPDATE "Session" SET "instanceId" = NULL, "closedAt" = COALESCE("closedAt", ${services.now()})
        WHERE "uid" = ${uid}`,
    ),
  );
}
