import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyBaseLogger } from "fastify";
import { LRUCache } from "lru-cache";
import { createWebSocketStream, type WebSocket } from "ws";
import { recordChange } from "../../changes/recordChange.ts";
import { NotFoundError, RateLimitedError } from "../../errors.ts";
import { type WebSocketHandler, webSocketHandler } from "../../http/listener/webSockets.ts";
import { Semaphore } from "../../secrets/Semaphore.ts";
import type { Services } from "../../services.ts";
import { NotConnectedError, UnreachableError } from "../protocol.ts";
import { AgentTunnel, type TunnelEvents, type TunneledDevice, type TunnelRequest } from "./AgentTunnel.ts";
import { noteClosed, noteOpened, statesOf } from "./presence.ts";

/** Tunnels that pending devices of a namespace, or behind one network, may hold: anybody can enroll devices. */
const PENDING_PER_TENANT = 200;
const PENDING_PER_NETWORK = 50;
/** Each tunnel is checked once in as many seconds. */
const SLOTS = 25;
/**
 * How long a proven tunnel is kept from a newer one of its device, in milliseconds. Agents connect again at once: two with
 * one device, as copies of its disk are, would take over from each other hundreds of times a second.
 */
const SETTLING = 10_000;
/**
 * Tunnels of a device that wait for their proof, one of each network at a time: an attacker's do not keep the device's own
 * agent out.
 */
const CANDIDATES = 8;
/** Proofs at a time, and those that may wait: each is a key exchange. */
const PROOFS = { atATime: 16, waiting: 1_000 };
/** How long an agent may take to prove its private key, in milliseconds. */
const PROOF_TIMEOUT = 20_000;
/** How often refused takeovers of a device are recorded in the audit trail, in milliseconds. */
const AUDITED = { every: 10 * 60_000, devices: 10_000 };
/** How long an agent may take to pick up a connection, in milliseconds. */
const PICK_UP_TIMEOUT = 10_000;

/**
 * The bytes of a WebSocket, which ends as a whole: it knows no end of one direction. An error closes the stream, and is
 * of no further interest.
 */
export function streamOver(socket: WebSocket): Duplex {
  const stream = createWebSocketStream(socket);
  return stream.on("error", () => {}).on("end", () => stream.destroy());
}

interface Dial {
  readonly tunnel: AgentTunnel;
  readonly timer: NodeJS.Timeout;
  pickedUp(stream: Duplex): void;
  failed(reason: string): void;
}

/**
 * Has the agent at the other end of a stream prove that it has the device's private key.
 * @returns undefined once it has; otherwise why it has not
 */
type Prove = (uid: string, stream: Duplex) => Promise<string | undefined>;

/** Counts things by key, and holds no key without one. */
class Tally {
  readonly #counts = new Map<string, number>();

  of = (key: string): number => this.#counts.get(key) ?? 0;

  add(key: string, change: 1 | -1): void {
    const count = this.of(key) + change;
    if (count === 0) this.#counts.delete(key);
    else this.#counts.set(key, count);
  }
}

/** The tunnels of agents that this instance holds, and the connections that agents are to pick up. */
export class AgentTunnels implements TunnelEvents {
  readonly #instanceId: string;
  readonly #services: Services;
  readonly #log: () => FastifyBaseLogger;
  readonly #prove: Prove;
  readonly #byDevice = new Map<string, AgentTunnel>();
  /** Tunnels that wait for their proof while another one of the device is held, here or by another instance. */
  readonly #candidates = new Map<string, Set<AgentTunnel>>();
  readonly #proofs = new Semaphore(PROOFS.atATime, PROOFS.waiting, "too many tunnels wait for their proof");
  readonly #audited = new LRUCache<string, true>({ max: AUDITED.devices, ttl: AUDITED.every });
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<AgentTunnel>());
  readonly #pendingOfTenant = new Tally();
  readonly #pendingOfNetwork = new Tally();
  readonly #dials = new Map<string, Dial>();
  readonly #timer: NodeJS.Timeout;
  #slot = 0;
  #stopping = false;

  constructor(instanceId: string, services: Services, log: () => FastifyBaseLogger, prove: Prove) {
    this.#instanceId = instanceId;
    this.#prove = prove;
    this.#services = services;
    this.#log = log;
    this.#timer = setInterval(() => void this.#checkSlot(), 1000).unref();
  }

  /** Number of devices that this instance holds a tunnel of. */
  get size(): number {
    return this.#byDevice.size;
  }

  has(uid: string): boolean {
    return this.#byDevice.has(uid);
  }

  /**
   * Prepares the tunnel of a device. It displaces another one only if its agent has the device's private key: whoever
   * lists devices knows all that another agent would enroll with.
   * @throws NotFoundError the device no longer exists
   * @throws RateLimitedError too many pending devices hold a tunnel, the device has only just opened the one that it
   * holds, or too many of its tunnels wait for their proof
   */
  async open(request: TunnelRequest): Promise<WebSocketHandler> {
    const { uid, tenantId, network, proven } = request;
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
      const tunnel = new AgentTunnel(socket, device, { pending, proven, openedAt }, this);
      this.#count(tunnel, 1);
      if (mustProve) void this.#holdProven(tunnel, request);
      else this.#hold(tunnel);
    });
  }

  /**
   * Connects with a device whose tunnel this instance holds.
   * @throws UnreachableError it does not pick up
   */
  connect(uid: string): Promise<Duplex> {
    const tunnel = this.#byDevice.get(uid);
    if (tunnel === undefined) return Promise.reject(new NotConnectedError());
    return this.#dial(tunnel);
  }

  /** @throws UnreachableError the agent does not pick up */
  #dial(tunnel: AgentTunnel): Promise<Duplex> {
    const id = randomBytes(16).toString("hex");
    return new Promise((resolve, reject) => {
      const failed = (reason: string) => reject(new UnreachableError(reason));
      const timer = setTimeout(() => this.#take(id)?.failed("did not answer in time"), PICK_UP_TIMEOUT);
      this.#dials.set(id, { tunnel, timer, pickedUp: resolve, failed });
      tunnel.announce(`/ssh/revdial?revdial.dialer=${this.#instanceId}&uuid=${id}`);
    });
  }

  /** An agent picks a connection up, which it can do once; undefined where none waits. */
  pickUp(id: string): WebSocketHandler | undefined {
    if (!this.#dials.has(id)) return undefined;
    // Not before the WebSocket is open: a request that is for none must not use the connection up.
    return webSocketHandler((socket) => {
      const dial = this.#take(id);
      if (dial === undefined) socket.close(1008);
      else dial.pickedUp(streamOver(socket));
    });
  }

  alive({ device }: AgentTunnel): void {
    this.#services.heartbeats.beat(device.uid, this.#services.now());
  }

  failed(tunnel: AgentTunnel, id: string): void {
    // One device cannot end the connection to another one.
    if (this.#dials.get(id)?.tunnel === tunnel) this.#take(id)?.failed("could not take the connection");
  }

  closed(tunnel: AgentTunnel): void {
    const { uid, tenantId, network } = tunnel.device;
    for (const slot of this.#slots) slot.delete(tunnel);
    this.#count(tunnel, -1);
    if (this.#byDevice.get(uid) === tunnel) this.#byDevice.delete(uid);
    for (const [id, dial] of this.#dials) {
      if (dial.tunnel === tunnel) this.#take(id)?.failed("hung up");
    }
    this.#log().debug({ device: uid, tenant: tenantId, network }, "tunnel closed");
    if (this.#stopping) return;
    noteClosed(this.#services, tunnel).catch((error: unknown) => this.#lost(error, "the end of a tunnel"));
  }

  /** Ends the checks. The listener closes the tunnels, and `Instances` notes the end of all of them at once. */
  stop(): void {
    this.#stopping = true;
    clearInterval(this.#timer);
  }

  #refuseTooSoon({ uid }: TunneledDevice): void {
    const held = this.#byDevice.get(uid);
    // An attacker's tunnel without a proof must not keep the device's own agent out.
    if (!held?.proven) return;
    const age = this.#services.now().getTime() - held.openedAt.getTime();
    // Below nothing: somebody has set the clock.
    if (age < 0 || age >= SETTLING) return;
    throw new RateLimitedError("the device has opened a tunnel just now", {
      "Retry-After": String(SETTLING / 1000),
    });
  }

  #refuseTooMany({ tenantId, network }: TunneledDevice): void {
    const full =
      this.#pendingOfTenant.of(tenantId) >= PENDING_PER_TENANT ||
      this.#pendingOfNetwork.of(network) >= PENDING_PER_NETWORK;
    if (!full) return;
    throw new RateLimitedError("too many devices that wait to be accepted hold a tunnel", {
      "Retry-After": "60",
    });
  }

  #refuseTooManyCandidates({ uid, network }: TunneledDevice): void {
    const candidates = [...(this.#candidates.get(uid) ?? [])];
    const same = candidates.some(({ device }) => device.network === network);
    if (candidates.length < CANDIDATES && !same) return;
    throw new RateLimitedError("another tunnel of the device waits for the proof of its private key", {
      "Retry-After": String(SETTLING / 1000),
    });
  }

  /** Counts the tunnel of a pending device. */
  #count({ device, pending }: AgentTunnel, change: 1 | -1): void {
    if (!pending) return;
    this.#pendingOfTenant.add(device.tenantId, change);
    this.#pendingOfNetwork.add(device.network, change);
  }

  /** Holds a tunnel in place of another one once its agent has proven the device's private key; else ends it. */
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
      this.#log().error({ err: error, device: uid }, "the proof of a device's private key failed");
    } finally {
      candidates.delete(tunnel);
      if (candidates.size === 0) this.#candidates.delete(uid);
    }
  }

  /** @returns why there is no proof; undefined: there is one */
  async #proofOf(tunnel: AgentTunnel): Promise<string | undefined> {
    const late = new AbortController();
    const timeout = sleep(PROOF_TIMEOUT, "did not answer in time", { signal: late.signal }).catch(
      () => undefined,
    );
    try {
      const stream = await this.#dial(tunnel);
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
      operation: "deviceConnection",
      object: { kind: "device", id: uid },
      before: null,
      after: { takeover: "refused", reason },
    });
  }

  #hold(tunnel: AgentTunnel): void {
    const { uid, tenantId, network } = tunnel.device;
    const before = this.#byDevice.get(uid);
    this.#byDevice.set(uid, tunnel);
    before?.close();
    // Not that of the present second, so that no tunnel is checked at once again.
    this.#slots[(this.#slot + SLOTS - 1) % SLOTS]?.add(tunnel);
    this.#log().debug({ device: uid, tenant: tenantId, network }, "tunnel open");
    noteOpened(this.#services, this.#instanceId, tunnel).then(
      (known) => known || tunnel.close(),
      (error: unknown) => this.#lost(error, "a tunnel"),
    );
  }

  #lost(error: unknown, what: string): void {
    this.#log().error(
      { err: error },
      `${what} could not be written; devices may show as online or offline wrongly`,
    );
  }

  #take(id: string): Dial | undefined {
    const dial = this.#dials.get(id);
    this.#dials.delete(id);
    clearTimeout(dial?.timer);
    return dial;
  }

  /** Sees whether the agents are still there, and whether the database still knows their tunnels. */
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
        // Deleted, or another instance has a newer one.
        if (state === undefined || state.tunnelId !== tunnel.id) tunnel.close();
        else this.#setPending(tunnel, state.status !== "accepted");
      }
    } catch (error) {
      this.#lost(error, "tunnels");
    }
  }

  #setPending(tunnel: AgentTunnel, pending: boolean): void {
    if (pending === tunnel.pending) return;
    this.#count(tunnel, -1);
    tunnel.pending = pending;
    this.#count(tunnel, 1);
  }
}
