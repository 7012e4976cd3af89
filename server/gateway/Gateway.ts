import type { Duplex } from "node:stream";
import type { FastifyBaseLogger } from "fastify";
import { Gauge } from "prom-client";
import { GatewayKey } from "../features/privateKeys/privateKeys.ts";
import type { Services } from "../services.ts";
import { LiveLogins } from "./logins/LiveLogins.ts";
import { Instances, type PeerAccess } from "./tunnels/Instances.ts";
import { Tunnels } from "./tunnels/Tunnels.ts";

interface GatewayOptions {
  /** Where other instances reach this one. @default they do not */
  readonly peers?: PeerAccess | undefined;
  /** Asked for when something is to be logged. */
  readonly log: () => FastifyBaseLogger;
}

/** The way from people to devices: the tunnels of agents, and the logins that go through them. */
export class Gateway {
  readonly services: Services;
  readonly log: () => FastifyBaseLogger;
  readonly tunnels: Tunnels;
  readonly instances: Instances;
  readonly live: LiveLogins;
  /** The key that logs in to agents. */
  readonly agentKey: GatewayKey;

  /** Holds no connection, and writes nothing, before `start`. */
  constructor(services: Services, { peers, log }: GatewayOptions) {
    this.services = services;
    this.log = log;
    this.instances = new Instances(services, peers, log);
    this.tunnels = new Tunnels(this.instances.id, services, log);
    this.live = new LiveLogins(services, log);
    this.agentKey = new GatewayKey(services);
    this.#measure();
  }

  #measure(): void {
    const { tunnels, live } = this;
    const registers = [this.services.metrics.registry];
    new Gauge({
      name: "gatehouse_tunnels",
      help: "Devices whose tunnel this instance holds",
      registers,
      collect() {
        this.set(tunnels.size);
      },
    });
    new Gauge({
      name: "gatehouse_device_sessions",
      help: "Logins to devices that go on through this instance",
      registers,
      collect() {
        this.set(live.size);
      },
    });
  }

  /** The id of this instance. */
  get instanceId(): string {
    return this.instances.id;
  }

  /** Makes this instance known to others. */
  start(): Promise<void> {
    return this.instances.start();
  }

  /**
   * Connects with a device, through whichever instance holds its tunnel.
   * @param holder the instance that has the newest tunnel, as the database knows it
   * @throws UnreachableError the device does not answer
   */
  async reach(uid: string, holder: string | null = null): Promise<Duplex> {
    // One that is here too may be an earlier one, whose agent is gone without a word.
    const elsewhere = holder !== null && holder !== this.instanceId;
    if (elsewhere || !this.tunnels.has(uid)) {
      try {
        return await this.instances.connect(uid);
      } catch (error) {
        // Or the newest one, which the database does not know yet.
        if (!this.tunnels.has(uid)) throw error;
      }
    }
    return this.tunnels.connect(uid);
  }

  /** Ends all logins, and checks of tunnels. */
  async endLogins(): Promise<void> {
    this.tunnels.stop();
    await this.live.stop();
  }

  /** Notes that this instance has ended; to be called when nothing goes through it any more. */
  stop(): Promise<void> {
    return this.instances.stop();
  }
}
