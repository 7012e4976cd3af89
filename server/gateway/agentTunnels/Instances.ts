import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { internal, liveConnections } from "@gatehouse-access/sdk/contract";
import type { FastifyBaseLogger } from "fastify";
import { WebSocket } from "ws";
import { providerOf, readRows, sql } from "../../db/sql/sql.ts";
import { retryConflicts } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";
import { NotConnectedError, UnreachableError } from "../protocol.ts";
import { streamOver } from "./AgentTunnels.ts";

/** How often an instance signs that it runs, and how long one without a sign counts as running, in milliseconds. */
const SIGN_OF_LIFE = 10_000;
const LIFETIME = 60_000;
/** The longest pause between two signs of an unbroken row of them, in milliseconds. */
const GAP = 3 * SIGN_OF_LIFE;
/** How long another instance may take to connect with a device, in milliseconds: longer than the device may. */
const PEER_TIMEOUT = 15_000;

/** The present time of PostgreSQL, as its columns have it. */
const DATABASE_TIME = sql`timezone('utc', clock_timestamp())`;

/** Where other instances reach this one, and the token that all of them share. */
export interface PeerAccess {
  readonly url: string;
  readonly token: string;
}

/** The running instances of the service, this one among them. */
export class Instances {
  /** The id of this instance; a process that starts anew has another one. */
  readonly id = randomBytes(16).toString("hex");
  readonly #services: Services;
  readonly #access: PeerAccess | undefined;
  readonly #log: () => FastifyBaseLogger;
  #timer: NodeJS.Timeout | undefined;
  /** The first and the last sign of life of the present unbroken row, by `performance.now()`. */
  #signs: { readonly first: number; readonly last: number } | undefined;
  #running: Promise<void> = Promise.resolve();

  /** @param access undefined: this instance neither reaches others nor is reached */
  constructor(services: Services, access: PeerAccess | undefined, log: () => FastifyBaseLogger) {
    this.#services = services;
    this.#access = access;
    this.#log = log;
  }

  /**
   * Makes this instance known, and clears what instances that were killed have left behind. Where the database cannot be
   * written, as on a full disk, it goes on and tries again.
   */
  async start(): Promise<void> {
    await this.#trySign();
    this.#timer = setInterval(() => {
      this.#running = this.#trySign();
    }, SIGN_OF_LIFE).unref();
  }

  /** Ends what goes through this instance: logins, and tunnels. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    try {
      await this.#clear([this.id]);
    } catch (error) {
      this.#log().error({ err: error }, "the end of this instance could not be written; others will do it");
    }
  }

  /**
   * Connects with a device whose tunnel another instance holds.
   * @throws UnreachableError no instance holds one, or the one that does cannot be reached
   */
  async connect(uid: string): Promise<Duplex> {
    const device = await this.#services.db.device.findUnique({
      where: { uid },
      select: { instanceId: true },
    });
    const holder = device?.instanceId ?? undefined;
    if (holder === undefined || holder === this.id) throw new NotConnectedError();
    return this.#open(holder, `/internal/devices/${uid}/stream`);
  }

  /**
   * Passes an agent on that picks up what another instance has announced.
   * @throws UnreachableError there is no such instance, or it knows nothing of the connection
   */
  async passOn(instanceId: string, dial: string): Promise<Duplex> {
    return this.#open(instanceId, `/internal/dials/${encodeURIComponent(dial)}`);
  }

  async #open(instanceId: string, path: string): Promise<Duplex> {
    const peer = await this.#services.db.instance.findUnique({ where: { id: instanceId } });
    const access = this.#access;
    if (!peer?.peerUrl || access === undefined) {
      throw new UnreachableError("is connected with an instance that cannot be reached (GATEHOUSE_PEER_URL)");
    }
    const socket = new WebSocket(new URL(path, peer.peerUrl), {
      headers: { [internal.INTERNAL_TOKEN]: access.token },
      handshakeTimeout: PEER_TIMEOUT,
      maxPayload: liveConnections.STREAM_MESSAGE_MAX,
      perMessageDeflate: false,
    });
    // At once: the first bytes may come together with the answer to the handshake.
    const stream = streamOver(socket);
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => {
        this.#log().warn(
          { peer: peer.peerUrl, reason: error.message },
          "another instance did not connect with a device",
        );
        reject(new UnreachableError("is connected with an instance that did not answer"));
      };
      socket.once("error", fail);
      socket.once("open", () => {
        socket.off("error", fail);
        resolve(stream);
      });
    });
  }

  async #trySign(): Promise<void> {
    try {
      await this.sign();
    } catch (error) {
      this.#signs = undefined;
      this.#log().error({ err: error }, "this instance could not be made known to others; it tries again");
    }
  }

  /**
   * Signs that this instance runs, and clears others that have not signed for their lifetime, by the database's clock:
   * those of instances differ. After an outage of the database nobody has signed, so that it clears nothing before its
   * own signs have worked for a lifetime.
   */
  async sign(): Promise<void> {
    const { db } = this.#services;
    // One process at a time uses an SQLite file: all others have ended.
    const alone = providerOf(db) === "sqlite";
    const now = alone ? sql`${this.#services.now()}` : DATABASE_TIME;
    const peerUrl = this.#access?.url ?? null;
    await db.$executeRaw(
      sql`INSERT INTO "Instance" ("id", "peerUrl", "lastSeen") VALUES (${this.id}, ${peerUrl}, ${now})
        ON CONFLICT ("id") DO UPDATE SET "peerUrl" = excluded."peerUrl", "lastSeen" = excluded."lastSeen"`,
    );
    const signedAt = performance.now();
    const isUnbroken = this.#signs !== undefined && signedAt - this.#signs.last <= GAP;
    this.#signs = { first: (isUnbroken && this.#signs?.first) || signedAt, last: signedAt };
    if (!alone && signedAt - this.#signs.first < LIFETIME) return;
    const late = alone ? sql`1 = 1` : sql`"lastSeen" < ${now} - make_interval(secs => ${LIFETIME / 1000})`;
    const ended = await readRows<{ readonly id: string }>(
      db,
      sql`SELECT "id" FROM "Instance" WHERE "id" <> ${this.id} AND ${late}`,
    );
    if (ended.length > 0) await this.#clear(ended.map(({ id }) => id));
  }

  /** What went through instances that have ended is over. */
  async #clear(ids: string[]): Promise<void> {
    const { db, now } = this.#services;
    const through = { instanceId: { in: ids } };
    const closed = { closedAt: now(), instanceId: null };
    await retryConflicts(() =>
      db.session.updateMany({ where: { ...through, closedAt: null }, data: closed }),
    );
    const offline = { offline: true, instanceId: null, tunnelId: null };
    await retryConflicts(() => db.device.updateMany({ where: through, data: offline }));
    await db.instance.deleteMany({ where: { id: { in: ids } } });
  }
}
