import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { MINUTE } from "@gatehouse-access/sdk/times";
import type { FastifyBaseLogger } from "fastify";
import { LRUCache } from "lru-cache";
import { recordChange } from "../../changes/recordChange.ts";
import { NotFoundError, RateLimitedError } from "../../errors.ts";
import { type WebSocketHandler, webSocketHandler } from "../../http/listener/webSockets.ts";
import { Semaphore } from "../../secrets/Semaphore.ts";
import type { Services } from "../../services.ts";
import { NotConnectedError, UnreachableError } from "../protocol.ts";
import { AgentTunnel, type TunnelEvents, type TunneledDevice, type TunnelRequest } from "./AgentTunnel.ts";
import { noteClosed, noteOpened, statesOf } from "./presence.ts";
import { Dials, Transport1 } from "./Transport1.ts";
import { Transport2 } from "./Transport2.ts";
import { TunnelProblems } from "./TunnelProblems.ts";

/**
 * Maximum number of tunnels of pending devices, per namespace and per network. The limits are necessary because any
 * client can enroll devices.
 */
const PENDING_PER_TENANT = 200;
const PENDING_PER_NETWORK = 50;
/** Number of groups of tunnels. One group is checked each second, so each tunnel is checked every 25 seconds. */
const SLOTS = 25;
/**
 * Minimum age, in milliseconds, of a proven tunnel before a newer tunnel of the same device can replace it. A tunnel is
 * proven if its agent has proven that it has the device's private key. An agent whose tunnel was replaced reconnects
 * immediately. Without this minimum age, two agents of the same device, such as copies of its disk, would replace each
 * other's tunnels hundreds of times a second.
 */
const SETTLING = 10_000;
/**
 * Maximum number of tunnels of a device that wait for the proof of the device's private key. Each network can have only
 * one such tunnel, so that an attacker's tunnels do not block the device's own agent.
 */
const CANDIDATES = 8;
/**
 * Maximum number of concurrent private-key proofs, and maximum number of waiting proofs. Each proof is an SSH key
 * exchange.
 */
const PROOFS = { atATime: 16, waiting: 1_000 };
/** Maximum time, in milliseconds, for an agent to prove its private key. */
const PROOF_TIMEOUT = 20_000;
/**
 * Limits of the audit trail entries about refused tunnel replacements. `every` is the minimum interval, in
 * milliseconds, between two entries about the same device. `devices` is the maximum number of devices for which the
 * service tracks this interval.
 */
const AUDITED = { every: 10 * MINUTE, devices: 10_000 };
/**
 * Requires the agent at the other end of a stream to prove that it has the device's private key.
 * @returns the reason why the proof failed; undefined if it succeeded
 */
type Prove = (uid: string, stream: Duplex) => Promise<string | undefined>;

/** Counters by key. A key whose counter is 0 uses no memory. */
class Tally {
  readonly #counts = new Map<string, number>();

  of = (key: string): number => this.#counts.get(key) ?? 0;

  add(key: string, change: 1 | -1): void {
    const count = this.of(key) + change;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}

/** The agent tunnels that this instance holds. */
export class AgentTunnels implements TunnelEvents {
  readonly #instanceId: string;
  readonly #services: Services;
  readonly #log: () => FastifyBaseLogger;
  readonly #prove: Prove;
  readonly #byDevice = new Map<string, AgentTunnel>();
  /**
   * Tunnels that wait for the proof of the device's private key. After the proof, such a tunnel replaces the device's
   * current tunnel. This instance or another instance holds the current tunnel.
   */
  readonly #candidates = new Map<string, Set<AgentTunnel>>();
  readonly #proofs = new Semaphore(
    PROOFS.atATime,
    PROOFS.waiting,
    "too many tunnels are waiting for the proof of their private keys",
  );
  readonly #audited = new LRUCache<string, true>({ max: AUDITED.devices, ttl: AUDITED.every });
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<AgentTunnel>());
  readonly #pendingOfTenant = new Tally();
  readonly #pendingOfNetwork = new Tally();
  /** The announced connections that agents with transport 1 must pick up. */
  readonly dials: Dials;
  readonly problems: TunnelProblems;
  readonly #timer: NodeJS.Timeout;
  #slot = 0;
  #stopping = false;

  constructor(instanceId: string, services: Services, log: () => FastifyBaseLogger, prove: Prove) {
    this.#instanceId = instanceId;
    this.dials = new Dials(instanceId);
    this.problems = new TunnelProblems(services, log);
    this.#prove = prove;
    this.#services = services;
    this.#log = log;
    this.#timer = setInterval(() => void this.#checkSlot(), 1000).unref();
  }

  /** Number of devices whose tunnels this instance holds. */
  get size(): number {
    return this.#byDevice.size;
  }

  has(uid: string): boolean {
    return this.#byDevice.has(uid);
  }

  /**
   * Prepares the tunnel of a device. A new tunnel replaces another tunnel only if the new tunnel's agent proves that it
   * has the device's private key. The private key is the only secret of an enrollment. Every user who can list devices
   * can read all other data that the agent sends to enroll.
   * @throws NotFoundError the device no longer exists
   * @throws RateLimitedError too many pending devices hold a tunnel, the device opened its current tunnel less than 10
   *   seconds ago, or too many tunnels of the device wait for their proof
   */
  async open(request: TunnelRequest): Promise<WebSocketHandler> {
    const { uid, tenantId, network, proven, transport } = request;
    const device = { uid, tenantId, network };
    const [state] = await statesOf(this.#services, [uid]);
    if (state === undefined) throw new NotFoundError("no such device");
    this.#refuseTooSoon(device);
    const pending = state.status !== "accepted";
    if (pending) this.#refuseTooMany(device);
    const mustProve = !proven && (this.#byDevice.has(uid) || state.tunnelId !== null);
    if (mustProve) this.#refuseTooManyCandidates(device);
    const openedAt = this.#services.now();
    return webSocketHandler((socket) => {
      const start = { pending, proven, openedAt };
      const tunnel = new AgentTunnel(
        socket,
        device,
        start,
        (link) => (transport === 1 ? new Transport1(link, this.dials) : new Transport2(link)),
        this,
      );
      this.#count(tunnel, 1);
      if (mustProve) void this.#holdProven(tunnel, request);
      else this.#hold(tunnel);
    });
  }

  /**
   * Connects to a device whose tunnel this instance holds.
   * @param session the id of the session that needs the connection
   * @throws UnreachableError the agent does not answer
   */
  connect(uid: string, session: string): Promise<Duplex> {
    const tunnel = this.#byDevice.get(uid);
    if (tunnel === undefined) return Promise.reject(new NotConnectedError());
    return tunnel.connect(session);
  }

  alive({ device }: AgentTunnel): void {
    this.#services.heartbeats.beat(device.uid, this.#services.now());
  }

  violated({ device, transport }: AgentTunnel, violation: string): void {
    this.problems
      .note(device.uid, { transport, violation })
      .catch((error: unknown) =>
        this.#log().error({ err: error }, "cannot log a violation of a tunnel's protocol"),
      );
  }

  closed(tunnel: AgentTunnel): void {
    const { uid, tenantId, network } = tunnel.device;
    for (const slot of this.#slots) slot.delete(tunnel);
    this.#count(tunnel, -1);
    if (this.#byDevice.get(uid) === tunnel) this.#byDevice.delete(uid);
    this.#log().debug({ device: uid, tenant: tenantId, network }, "tunnel closed");
    if (this.#stopping) return;
    noteClosed(this.#services, tunnel).catch((error: unknown) => this.#logLost(error, "the end of a tunnel"));
  }

  /**
   * Stops the tunnel checks. The HTTP listener closes the tunnels, and `Instances` records the end of all tunnels in
   * one write.
   */
  stop(): void {
    this.#stopping = true;
    clearInterval(this.#timer);
  }

  #refuseTooSoon({ uid }: TunneledDevice): void {
    const held = this.#byDevice.get(uid);
    // Only a proven tunnel delays later tunnels. Otherwise an attacker's tunnel, which has no proof, could block the
    // device's own agent.
    if (!held?.proven) return;
    const age = this.#services.now().getTime() - held.openedAt.getTime();
    // A negative age means that the clock was set back.
    if (age < 0 || age >= SETTLING) return;
    throw new RateLimitedError("the device opened another tunnel a few seconds ago", {
      "Retry-After": String(SETTLING / 1000),
    });
  }

  #refuseTooMany({ tenantId, network }: TunneledDevice): void {
    const full =
      this.#pendingOfTenant.of(tenantId) >= PENDING_PER_TENANT ||
      this.#pendingOfNetwork.of(network) >= PENDING_PER_NETWORK;
    if (!full) return;
    throw new RateLimitedError("too many pending devices hold a tunnel", {
      "Retry-After": "60",
    });
  }

  #refuseTooManyCandidates({ uid, network }: TunneledDevice): void {
    const candidates = [...(this.#candidates.get(uid) ?? [])];
    const same = candidates.some(({ device }) => device.network === network);
    if (candidates.length < CANDIDATES && !same) return;
    throw new RateLimitedError("another tunnel of the device is waiting for the proof of its private key", {
      "Retry-After": String(SETTLING / 1000),
    });
  }

  /**
   * Adds 1 to the numbers of pending devices' tunnels, or subtracts 1. Does nothing for the tunnel of an accepted
   * device.
   */
  #count({ device, pending }: AgentTunnel, change: 1 | -1): void {
    if (!pending) return;
    this.#pendingOfTenant.add(device.tenantId, change);
    this.#pendingOfNetwork.add(device.network, change);
  }

  /**
   * Replaces the current tunnel of a device after the new tunnel's agent has proven the device's private key. If the
   * proof fails, closes the new tunnel.
   */
  async #holdProven(tunnel: AgentTunnel, request: TunnelRequest): Promise<void> {
    const { uid } = tunnel.device;
    const candidates = this.#candidates.get(uid) ?? new Set();
    this.#candidates.set(uid, candidates.add(tunnel));
    try {
      const failure = await this.#proofs.run(() => this.#proofOf(tunnel));
      if (tunnel.isClosed) return;
      if (failure === undefined) {
        tunnel.proven = true;
        this.#hold(tunnel);
        return;
      }
      tunnel.close();
      await this.#refusedTakeover(request, failure);
    } catch (error) {
      tunnel.close();
      this.#log().error({ err: error, device: uid }, "cannot check the proof of a device's private key");
    } finally {
      candidates.delete(tunnel);
      if (candidates.size === 0) this.#candidates.delete(uid);
    }
  }

  /**
   * Requires the agent of a tunnel to prove its private key.
   * @returns the reason why the proof failed; undefined if it succeeded
   */
  async #proofOf(tunnel: AgentTunnel): Promise<string | undefined> {
    const late = new AbortController();
    const timeout = sleep(PROOF_TIMEOUT, "did not answer in time", { signal: late.signal }).catch(
      () => undefined,
    );
    try {
      const stream = await tunnel.connect(randomBytes(32).toString("hex"));
      try {
        return await Promise.race([this.#prove(tunnel.device.uid, stream), timeout]);
      } finally {
        stream.destroy();
      }
    } catch (error) {
      if (error instanceof UnreachableError) return error.message;
      throw error;
    } finally {
      late.abort();
    }
  }

  async #refusedTakeover(request: TunnelRequest, failure: string): Promise<void> {
    const { uid, tenantId, address, requestId } = request;
    const reason = `the agent ${failure}`;
    this.#services.metrics.refusedTakeovers.inc();
    this.#log().warn(
      { device: uid, tenant: tenantId, address, reason },
      "takeover of a device's tunnel refused",
    );
    if (this.#audited.has(uid)) return;
    this.#audited.set(uid, true);
    await recordChange(this.#services, {
      tenantId,
      caller: { kind: "device", uid },
      request: { id: requestId, address },
      operation: request.transport === 1 ? "deviceConnection" : "agentConnection",
      object: { kind: "device", id: uid },
      before: null,
      after: { takeover: "refused", reason },
    });
  }

  #hold(tunnel: AgentTunnel): void {
    const { uid, tenantId, network } = tunnel.device;
    const { transport } = tunnel;
    const before = this.#byDevice.get(uid);
    this.#byDevice.set(uid, tunnel);
    before?.close();
    // Add the tunnel to the group that was checked last, so that its first check is as late as possible.
    this.#slots[(this.#slot + SLOTS - 1) % SLOTS]?.add(tunnel);
    this.#log().debug({ device: uid, tenant: tenantId, network, transport }, "tunnel open");
    noteOpened(this.#services, this.#instanceId, tunnel).then(
      (known) => known || tunnel.close(),
      (error: unknown) => this.#logLost(error, "a tunnel"),
    );
  }

  #logLost(error: unknown, what: string): void {
    this.#log().error({ err: error }, `cannot write ${what}; the online state of devices may be wrong`);
  }

  /**
   * Checks the tunnels of one group: whether their agents respond, and whether the database still lists the tunnels.
   */
  async #checkSlot(): Promise<void> {
    const slot = this.#slots[this.#slot];
    this.#slot = (this.#slot + 1) % SLOTS;
    if (slot === undefined || slot.size === 0) return;
    const tunnels = [...slot];
    for (const tunnel of tunnels) tunnel.check();
    try {
      const states = await statesOf(
        this.#services,
        tunnels.map(({ device }) => device.uid),
      );
      const byUid = new Map(states.map((state) => [state.uid, state]));
      for (const tunnel of tunnels) {
        const state = byUid.get(tunnel.device.uid);
        // The device no longer exists, or another instance holds a newer tunnel.
        if (state === undefined || state.tunnelId !== tunnel.id) tunnel.close();
        else this.#setPending(tunnel, state.status !== "accepted");
      }
    } catch (error) {
      this.#logLost(error, "tunnels");
    }
  }

  #setPending(tunnel: AgentTunnel, pending: boolean): void {
    if (pending === tunnel.pending) return;
    this.#count(tunnel, -1);
    tunnel.pending = pending;
    this.#count(tunnel, 1);
  }
}
