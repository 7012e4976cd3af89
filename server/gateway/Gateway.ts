import { createPublicKey, randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { FastifyBaseLogger } from "fastify";
import { Gauge } from "prom-client";
import { sshBlobOf } from "../features/privateKeys/rsaKeyPair.ts";
import { addToSessions } from "../features/sessions/addEntries.ts";
import { beginSession } from "../features/sessions/entry.ts";
import type { Services } from "../services.ts";
import { AgentTunnels } from "./agentTunnels/AgentTunnels.ts";
import { Instances, type PeerAccess } from "./agentTunnels/Instances.ts";
import { type CallHandlers, GatewayProcess } from "./GatewayProcess.ts";
import { admit } from "./logins/admit.ts";
import { LiveLogins } from "./logins/LiveLogins.ts";
import {
  type GatewayProcessStart,
  type GatewayProcessState,
  gatewaySettings,
  NotConnectedError,
  type ReachedDevice,
  type RelayTicket,
  UnreachableError,
} from "./protocol.ts";
import { fingerprintOf } from "./ssh/signature.ts";

/** How long the gateway process may take to read what an agent sent last, in milliseconds. */
const LINGER = 10_000;

interface GatewayOptions {
  /** Folder for the local socket of the gateway process. */
  readonly folder: string;
  /** Where other instances reach this one. @default they do not */
  readonly peers?: PeerAccess | undefined;
  /** Called when a line is to be logged. */
  readonly log: () => FastifyBaseLogger;
}

/**
 * SSH to devices: the tunnels of agents, the logins through them, and the process that speaks SSH. It answers the calls
 * of that process.
 */
export class Gateway {
  readonly services: Services;
  readonly log: () => FastifyBaseLogger;
  readonly agentTunnels: AgentTunnels;
  readonly instances: Instances;
  readonly live: LiveLogins;
  readonly process: GatewayProcess;
  /** Whether the service is being stopped, and no new logins begin. */
  isDraining = false;
  /** Proofs that the process works on, each with the function that takes its outcome. */
  readonly #proofs = new Map<RelayTicket, (failure: string | undefined) => void>();

  /** The constructor opens no connection, writes nothing and starts no process. */
  constructor(services: Services, { folder, peers, log }: GatewayOptions) {
    this.services = services;
    this.log = log;
    this.instances = new Instances(services, peers, log);
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
      ended: () => void this.live.endAll(),
    });
    this.#measure();
  }

  #handlers(): CallHandlers {
    const { services, live, instances } = this;
    return {
      admit: (question) => admit(services, question),
      begin: async ({ uid, type, ...login }) => {
        const { deviceUid, username, address: ipAddress, key, userId = null } = login;
        const session = { uid, deviceUid, username, ipAddress, type, term: "none", userId };
        const of = { keyFingerprint: key === undefined ? null : fingerprintOf(key), viaGateway: true };
        const facts = { ...login, userId: login.userId };
        const write = () => beginSession(services, { ...session, ...of, instanceId: instances.id });
        await live.begin(uid, facts, write);
        return undefined;
      },
      reach: ({ session }) => this.#reachFor(session),
      proved: async ({ ticket, failure }) => {
        this.#proofs.get(ticket)?.(failure);
        return undefined;
      },
      agentKey: () => services.agentKey.pem(),
      // Its own sessions alone, whatever it sends.
      write: (sessions) =>
        addToSessions(
          services,
          sessions.filter(({ uid }) => live.deviceOf(uid) !== undefined),
          this.log,
        ),
      end: async ({ uid }) => {
        await live.end(uid);
        return undefined;
      },
    };
  }

  #measure(): void {
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
    gauge("gatehouse_device_sessions", "Sessions of devices that go through this instance", () => live.size);
    gauge(
      "gatehouse_gateway_restarts",
      "Times that the gateway process was restarted",
      () => process.restarts,
    );
    const state = (name: string, help: string, value: (state: GatewayProcessState) => number) =>
      gauge(name, help, () => (process.state === undefined ? 0 : value(process.state)));
    state("gatehouse_gateway_memory_bytes", "Resident memory of the gateway process", ({ memory }) => memory);
    state(
      "gatehouse_gateway_waiting_entries",
      "Events and recorded output of sessions that wait to be written",
      ({ waiting }) => waiting.entries,
    );
    state(
      "gatehouse_gateway_waiting_characters",
      "Characters of events and recorded output of sessions that wait to be written",
      ({ waiting }) => waiting.characters,
    );
  }

  get instanceId(): string {
    return this.instances.id;
  }

  /** Makes this instance known to others. */
  start(): Promise<void> {
    return this.instances.start();
  }

  /**
   * Serves SSH to devices.
   * @returns the port
   * @throws OperatorError the address cannot be listened on
   */
  async listen(entry: NonNullable<GatewayProcessStart["entry"]>): Promise<number> {
    const port = await this.process.listen(entry);
    // Made now, so that the first login does not wait for it.
    this.services.agentKey.pem().catch((error: unknown) => {
      this.log().error(
        { err: error },
        "the key that logs in to agents could not be made, and will be with a login",
      );
    });
    return port;
  }

  /**
   * Connects with a device, through whichever instance holds its tunnel.
   * @param holder the instance that has the newest tunnel, as the database knows it
   * @throws UnreachableError the device does not answer
   */
  async reach(uid: string, holder: string | null = null): Promise<Duplex> {
    // One that is here too may be an earlier one, whose agent is gone without a word.
    const elsewhere = holder !== null && holder !== this.instanceId;
    if (elsewhere || !this.agentTunnels.has(uid)) {
      try {
        return await this.instances.connect(uid);
      } catch (error) {
        // Or the newest one, which the database does not know yet.
        if (!this.agentTunnels.has(uid)) throw error;
      }
    }
    return this.agentTunnels.connect(uid);
  }

  /** @throws UnreachableError the session has ended, or its device does not answer */
  async #reachFor(session: string): Promise<ReachedDevice> {
    const uid = this.live.deviceOf(session);
    const device = uid && (await this.#deviceOf(uid));
    if (!device) throw new NotConnectedError();
    const stream = await this.reach(device.uid, device.instanceId).catch((error: unknown) => {
      if (!(error instanceof NotConnectedError)) throw error;
      const seen = device.lastSeen.toISOString().replace("T", " ").slice(0, 19);
      throw new UnreachableError(`is offline. The service last saw it at ${seen} UTC`);
    });
    this.live.connected(session, stream);
    return this.#hand(stream, session, hostKeyOf(device.publicKey));
  }

  #deviceOf(uid: string) {
    const select = { uid: true, publicKey: true, instanceId: true, lastSeen: true } as const;
    return this.services.db.device.findUnique({ where: { uid }, select });
  }

  /** Lets the gateway process speak SSH with the agent at the other end of a stream. */
  #hand(stream: Duplex, session: string, hostKey: Buffer): ReachedDevice {
    // In a message of its own: agents lose what comes in the same one.
    stream.write(`GET /ssh/${session} HTTP/1.1\r\nHost: gateway\r\n\r\n`);
    const ticket = this.process.expect(
      (socket) => relay(socket, stream),
      () => stream.destroy(),
    );
    return { ticket, hostKey };
  }

  /**
   * Has an agent prove that it has the private key of its device. Where the gateway process ends meanwhile, the stream
   * ends too.
   * @returns why there is no proof; undefined: there is one
   * @throws UnreachableError the device no longer exists, or has enrolled with a key that is none
   */
  async #prove(uid: string, stream: Duplex): Promise<string | undefined> {
    const device = await this.#deviceOf(uid);
    if (!device) throw new UnreachableError("no longer exists");
    const hostKey = hostKeyOf(device.publicKey);
    await this.process.begin();
    const reached = this.#hand(stream, randomBytes(32).toString("hex"), hostKey);
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
   * Ends all logins, and checks of tunnels.
   * @param drain how long logins may go on, in milliseconds, while no new ones begin
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

  /** Notes that this instance has ended; to be called when nothing goes through it any more. */
  stop(): Promise<void> {
    return this.instances.stop();
  }
}

/** Passes bytes between the gateway process and an agent. The end of either one ends both at once, as agents expect. */
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
    // The gateway process may not read what is left.
    setTimeout(() => socket.destroy(), LINGER).unref();
  });
}

/** A device's public key (PEM, PKCS#1) as SSH has it. */
function hostKeyOf(pem: string): Buffer {
  try {
    return sshBlobOf(createPublicKey(pem));
  } catch {
    throw new UnreachableError("has enrolled with a key that is none");
  }
}
