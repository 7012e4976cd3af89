import { createPublicKey } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { FastifyBaseLogger } from "fastify";
import { Gauge } from "prom-client";
import { BusyError } from "../errors.ts";
import { sshBlobOf } from "../features/privateKeys/rsaKeyPair.ts";
import { addToSessions } from "../features/sessions/addEntries.ts";
import { beginSession, RecordingsFullError } from "../features/sessions/entry.ts";
import type { Services } from "../services.ts";
import { AgentTunnels } from "./agentTunnels/AgentTunnels.ts";
import { type InstanceFacts, Instances } from "./agentTunnels/Instances.ts";
import { type CallHandlers, GatewayProcess } from "./GatewayProcess.ts";
import { admit } from "./logins/admit.ts";
import { LiveLogins } from "./logins/LiveLogins.ts";
import {
  type Admission,
  type GatewayProcessStart,
  type GatewayProcessState,
  gatewaySettings,
  type LoginQuestion,
  NotConnectedError,
  type ReachedDevice,
  type RelayTicket,
  UnreachableError,
} from "./protocol.ts";
import { fingerprintOf } from "./ssh/signature.ts";

/**
 * Maximum time, in milliseconds, for the gateway process to read the remaining output of an agent after the agent's
 * connection has ended.
 */
const LINGER = 10_000;

interface GatewayOptions extends InstanceFacts {
  /** Folder that contains the local socket of the gateway process. */
  readonly folder: string;
  /** Returns the service's logger. */
  readonly log: () => FastifyBaseLogger;
}

/**
 * Provides SSH access to devices on one instance. Holds the agents' tunnels and the logins through these tunnels. Runs
 * the gateway process, which speaks SSH, and handles its calls to the service.
 */
export class Gateway {
  readonly services: Services;
  readonly log: () => FastifyBaseLogger;
  readonly agentTunnels: AgentTunnels;
  readonly instances: Instances;
  readonly live: LiveLogins;
  readonly process: GatewayProcess;
  /** True while the service is stopping and accepts no new logins. */
  isDraining = false;
  /** Callbacks that receive the result of each private-key proof in progress, by ticket. */
  readonly #proofs = new Map<RelayTicket, (failure: string | undefined) => void>();

  /** Creates the gateway's components. Opens no connection, writes nothing and starts no process. */
  constructor(services: Services, { folder, log, ...facts }: GatewayOptions) {
    this.services = services;
    this.log = log;
    this.instances = new Instances(services, facts, log);
    this.agentTunnels = new AgentTunnels(this.instances.id, services, log, (uid, stream) =>
      this.#prove(uid, stream),
    );
    this.live = new LiveLogins(services, log, (uid, reason) =>
      this.process.send({ kind: "end", uid, reason }),
    );
    this.process = new GatewayProcess({
      folder,
      start: { settings: gatewaySettings(services.settings) },
      log,
      handlers: this.#handlers(),
      count: ({ entry, credential, result, seconds }) => {
        services.metrics.deviceLogins.inc({ entry, credential, result });
        if (seconds !== undefined) services.metrics.deviceLoginDuration.observe({ entry }, seconds);
      },
      refused: (exchanges) => services.metrics.refusedExchanges.inc(exchanges),
      lost: ({ gaps, bytes }) => {
        services.metrics.recordingGaps.inc(gaps);
        services.metrics.recordingLostBytes.inc(bytes);
      },
      ended: () => void this.live.endAll(),
    });
    this.#registerGauges();
  }

  #handlers(): CallHandlers {
    const { services, live, instances } = this;
    return {
      admit: (question) => this.admit(question),
      begin: async ({ uid, type, ends, ...login }) => {
        const { deviceUid, username, address: ipAddress, key, userId = null } = login;
        const session = { uid, deviceUid, username, ipAddress, type, term: "none", userId };
        const of = { keyFingerprint: key === undefined ? null : fingerprintOf(key), viaGateway: true };
        const facts = { ...login, userId: login.userId };
        const write = () =>
          beginSession(services, { ...session, ...of, instanceId: instances.id }).catch((error: unknown) => {
            if (!(error instanceof RecordingsFullError)) throw error;
            throw new UnreachableError(`accepts no session: ${error.message}`);
          });
        await live.begin(uid, facts, ends, write);
        return undefined;
      },
      reach: ({ session }) => this.#reachFor(session),
      proved: async ({ ticket, failure }) => {
        this.#proofs.get(ticket)?.(failure);
        return undefined;
      },
      agentKey: () => services.agentKey.pem(),
      // The gateway process may write entries only to sessions whose logins go through this instance.
      write: async (sessions) => {
        const own = sessions.filter(({ uid }) => live.deviceOf(uid) !== undefined);
        const results = await addToSessions(services, own, this.log);
        return sessions.map((session) => results[own.indexOf(session)] ?? "silenced");
      },
      end: async ({ uid, at }) => {
        await live.end(uid, at);
        return undefined;
      },
    };
  }

  #registerGauges(): void {
    const { agentTunnels, live, process } = this;
    const registers = [this.services.metrics.registry];
    const gauge = (name: string, help: string, value: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(value());
        },
      });
    gauge("gatehouse_tunnels", "Devices whose tunnel this instance holds", () => agentTunnels.size);
    gauge("gatehouse_device_sessions", "Device sessions that go through this instance", () => live.size);
    gauge("gatehouse_gateway_restarts", "Restarts of the gateway process", () => process.restarts);
    const state = (name: string, help: string, value: (state: GatewayProcessState) => number) =>
      gauge(name, help, () => (process.state === undefined ? 0 : value(process.state)));
    state("gatehouse_gateway_memory_bytes", "Resident memory of the gateway process", ({ memory }) => memory);
    state(
      "gatehouse_gateway_waiting_entries",
      "Session events and recorded output waiting to be written",
      ({ waiting }) => waiting.entries,
    );
    state(
      "gatehouse_gateway_waiting_characters",
      "Characters of session events and recorded output waiting to be written",
      ({ waiting }) => waiting.characters,
    );
  }

  get instanceId(): string {
    return this.instances.id;
  }

  /** Announces this instance to other instances. */
  start(): Promise<void> {
    return this.instances.start();
  }

  /**
   * Starts the SSH listener.
   * @returns the port
   * @throws OperatorError the process cannot listen on the address
   */
  async listen(entry: NonNullable<GatewayProcessStart["entry"]>): Promise<number> {
    const port = await this.process.listen(entry);
    // Creates the key now, so that the first login does not wait for it.
    this.services.agentKey.pem().catch((error: unknown) => {
      this.log().error({ err: error }, "cannot create the key for logins to agents; the next login retries");
    });
    return port;
  }

  /**
   * Allows or denies a login, see {@link admit}. Also denies the login if this instance is not compatible with the
   * schema of the database.
   */
  async admit(question: LoginQuestion): Promise<Admission> {
    try {
      await this.instances.requireSchema();
    } catch (error) {
      if (error instanceof BusyError) return { refused: "busy", reason: error.message };
      throw error;
    }
    return admit(this.services, question);
  }

  /**
   * Connects to a device through the instance that holds its tunnel.
   * @param session the id of the session that needs the connection
   * @param holder the instance with the newest tunnel, according to the database
   * @throws UnreachableError the device does not respond
   */
  async reach(uid: string, session: string, holder: string | null = null): Promise<Duplex> {
    // The database lists a newer tunnel at another instance. This instance may still hold an older tunnel whose agent
    // disappeared without closing it.
    const elsewhere = holder !== null && holder !== this.instanceId;
    if (elsewhere || !this.agentTunnels.has(uid)) {
      try {
        return await this.instances.connect(uid, session);
      } catch (error) {
        // This instance may hold a newer tunnel that the database does not list yet.
        if (!this.agentTunnels.has(uid)) throw error;
      }
    }
    return this.agentTunnels.connect(uid, session);
  }

  /**
   * Connects the gateway process to the device of a session.
   * @throws UnreachableError the session has ended, or its device does not respond
   */
  async #reachFor(session: string): Promise<ReachedDevice> {
    const uid = this.live.deviceOf(session);
    const device = uid && (await this.#deviceOf(uid));
    if (!device) throw new NotConnectedError();
    const stream = await this.reach(device.uid, session, device.instanceId).catch((error: unknown) => {
      if (!(error instanceof NotConnectedError)) throw error;
      const seen = device.lastSeen.toISOString().replace("T", " ").slice(0, 19);
      throw new UnreachableError(`is offline. The service last saw it at ${seen} UTC`);
    });
    this.live.connected(session, stream);
    return this.#connectProcess(stream, hostKeyOf(device.publicKey));
  }

  #deviceOf(uid: string) {
    const select = { uid: true, publicKey: true, instanceId: true, lastSeen: true } as const;
    return this.services.db.device.findUnique({ where: { uid }, select });
  }

  /** Connects the gateway process to the agent at the other end of a stream. */
  #connectProcess(stream: Duplex, hostKey: Buffer): ReachedDevice {
    const ticket = this.process.expect(
      (socket) => relay(socket, stream),
      () => stream.destroy(),
    );
    return { ticket, hostKey };
  }

  /**
   * Requires an agent to prove that it has the private key of its device. If the gateway process ends before the proof
   * is complete, the stream ends too.
   * @returns the reason why the proof failed; undefined if it succeeded
   * @throws UnreachableError the device no longer exists, or it enrolled with an invalid key
   */
  async #prove(uid: string, stream: Duplex): Promise<string | undefined> {
    const device = await this.#deviceOf(uid);
    if (!device) throw new UnreachableError("no longer exists");
    const hostKey = hostKeyOf(device.publicKey);
    await this.process.begin();
    const reached = this.#connectProcess(stream, hostKey);
    const outcome = Promise.withResolvers<string | undefined>();
    this.#proofs.set(reached.ticket, outcome.resolve);
    stream.once("close", () => outcome.resolve("hung up"));
    this.process.send({ kind: "prove", ...reached });
    try {
      return await outcome.promise;
    } finally {
      this.#proofs.delete(reached.ticket);
    }
  }

  /**
   * Ends all logins, and stops the tunnel checks.
   * @param drain drain time, in milliseconds. During this time, open logins continue and new logins are refused.
   */
  async endLogins(drain = 0): Promise<void> {
    if (drain > 0 && this.live.size > 0) {
      this.isDraining = true;
      this.log().info({ sessions: this.live.size, seconds: drain / 1000 }, "waiting for sessions to end");
      const notice = `The service is being stopped. This session ends in ${drain / 1000} seconds.`;
      this.process.send({ kind: "drain", notice });
      await this.live.untilNone(drain);
    }
    this.agentTunnels.stop();
    this.live.stop();
    await this.process.stop();
    await this.live.endAll();
  }

  /** Records that this instance has ended. Call this method after the last traffic through the instance has ended. */
  stop(): Promise<void> {
    return this.instances.stop();
  }
}

/**
 * Passes bytes between the gateway process and an agent. When one connection ends, the other connection ends too,
 * because agents expect that.
 */
function relay(socket: Socket, agent: Duplex): void {
  if (agent.destroyed) {
    socket.destroy();
    return;
  }
  socket.pipe(agent, { end: false });
  agent.pipe(socket);
  socket.on("close", () => agent.destroy());
  agent.on("close", () => {
    socket.destroySoon();
    // The gateway process may never read the remaining output, so this timer closes the connection.
    setTimeout(() => socket.destroy(), LINGER).unref();
  });
}

/** Converts a device's public key (PEM, PKCS#1) to SSH's wire format. */
function hostKeyOf(pem: string): Buffer {
  try {
    return sshBlobOf(createPublicKey(pem));
  } catch {
    throw new UnreachableError("has enrolled with an invalid key");
  }
}
