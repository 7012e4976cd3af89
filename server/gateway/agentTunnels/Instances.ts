import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { internal, liveConnections } from "@gatehouse-access/sdk/contract";
import { sharedWhilePending } from "@gatehouse-access/sdk/promises";
import type { FastifyBaseLogger } from "fastify";
import { WebSocket } from "ws";
import { INSTANCE_LIFETIME, MIGRATION_LOCK } from "../../db/Database.ts";
import { databaseTime, providerOf, readRows, type Sql, sql } from "../../db/sql/sql.ts";
import { retryConflicts } from "../../db/sql/transaction.ts";
import { BusyError } from "../../errors.ts";
import { closeInterrupted } from "../../features/sessions/interrupted.ts";
import { OperatorError } from "../../OperatorError.ts";
import type { Services } from "../../services.ts";
import { NotConnectedError, UnreachableError } from "../protocol.ts";
import { streamOver } from "./Transport1.ts";

/** Interval between heartbeats of an instance, in milliseconds. */
const HEARTBEAT_INTERVAL = 10_000;
/** Maximum interval, in milliseconds, between two heartbeats of the same uninterrupted series. */
const LONGEST_INTERVAL = 3 * HEARTBEAT_INTERVAL;
/**
 * Maximum time, in milliseconds, for another instance to connect to a device. This time is longer than the time that
 * the device's agent has to pick up the connection.
 */
const PEER_TIMEOUT = 15_000;

/** The URL at which other instances reach this instance, and the token that all instances share. */
interface PeerAccess {
  readonly url: string;
  readonly token: string;
}

/** The facts that an instance announces to other instances. */
export interface InstanceFacts {
  /**
   * The access to this instance for other instances. Undefined if the instances of the service cannot connect to each
   * other.
   */
  readonly peers?: PeerAccess | undefined;
  /**
   * The schema of the instance: the name of the newest migration that the instance's version contains. Undefined if no
   * other process uses the database.
   */
  readonly schema: string | undefined;
}

/** A point in time by both clocks of the process, in milliseconds. */
interface Moment {
  /** Time of the monotonic clock. This clock stops while the machine is suspended. */
  readonly elapsed: number;
  /** Time of the system clock, since 1970. An operator can change this clock. */
  readonly time: number;
}

const momentNow = (): Moment => ({ elapsed: performance.now(), time: Date.now() });

/**
 * The error of an instance that must end, because the schema of the database is not compatible with the instance's
 * version.
 */
export class SupersededError extends OperatorError {
  override readonly name = "SupersededError";
}

/**
 * The running instances of the service, including this instance.
 *
 * On PostgreSQL, a newer version may migrate the database while this instance runs. If a migration is incompatible with
 * this instance, the newer version waits until the last heartbeat of this instance is older than `INSTANCE_LIFETIME`.
 * With `--migrate-anyway on`, the newer version applies the migration immediately. The next heartbeat of this instance
 * then finds the new schema, and this instance ends.
 */
export class Instances {
  /** The id of this instance. Each process start creates a new id. */
  readonly id = randomBytes(16).toString("hex");
  readonly #services: Services;
  readonly #access: PeerAccess | undefined;
  readonly #schema: string | undefined;
  readonly #log: () => FastifyBaseLogger;
  readonly #end = Promise.withResolvers<SupersededError>();
  #superseded: SupersededError | undefined;
  /**
   * Time, by both clocks, just before the last heartbeat that was followed by a check of the schema. For
   * `INSTANCE_LIFETIME` after this time, no migration begins that is incompatible with this instance.
   */
  #confirmed: Moment | undefined;
  readonly #check = sharedWhilePending(() => this.#mayAdmit());
  #timer: NodeJS.Timeout | undefined;
  /** Times of the first and the last heartbeat of the current uninterrupted series, from `performance.now()`. */
  #heartbeats: { readonly first: number; readonly last: number } | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(services: Services, { peers, schema }: InstanceFacts, log: () => FastifyBaseLogger) {
    this.#services = services;
    this.#access = peers;
    this.#schema = schema;
    this.#log = log;
  }

  /**
   * Announces this instance, and clears the records of killed instances. If the database cannot be written, for example
   * because the disk is full, the start succeeds and the next heartbeat tries again.
   * @throws SupersededError a newer version has migrated the database since this process opened it
   */
  async start(): Promise<void> {
    await this.#trySign();
    if (this.#superseded !== undefined) throw this.#superseded;
    let isSigning = false;
    this.#timer = setInterval(() => {
      if (isSigning) return;
      isSigning = true;
      this.#running = this.#trySign().finally(() => {
        isSigning = false;
      });
    }, HEARTBEAT_INTERVAL).unref();
  }

  /** Resolves when this instance must end because it is not compatible with the schema of the database. */
  get superseded(): Promise<SupersededError> {
    return this.#end.promise;
  }

  /**
   * Requires that this instance is compatible with the schema of the database. Call this method before the service
   * accepts a request or a login. If the last heartbeat is too old, the method first sends a heartbeat and reads the
   * schema.
   * @throws BusyError the instance must end, or a newer version may be migrating the database
   * @throws Error the schema cannot be read
   */
  async requireSchema(): Promise<void> {
    if (this.#superseded === undefined && this.#isConfirmed()) return;
    if (await this.#check()) return;
    const reason =
      this.#superseded === undefined
        ? "a newer version of the service may be migrating the database, try again later"
        : "this instance is stopping, because a newer version of the service has replaced it";
    throw new BusyError(reason, { "Retry-After": "2" });
  }

  /**
   * Returns true if this instance may accept requests and logins although its last heartbeat is too old. First sends a
   * heartbeat, so that each new migration waits for this instance. If the database cannot be written, no migration can
   * begin either, so the instance may still accept reads.
   */
  async #mayAdmit(): Promise<boolean> {
    if (this.#superseded !== undefined) return false;
    try {
      await this.sign();
      return this.#superseded === undefined && this.#isConfirmed();
    } catch {
      // The periodic heartbeat logs the error.
      return (await this.#isSchemaSettled()) && this.#superseded === undefined;
    }
  }

  /** Returns true if no migration can begin now that is incompatible with this instance. */
  #isConfirmed(): boolean {
    if (this.#schema === undefined) return true;
    const { elapsed, time } = momentNow();
    const confirmed = this.#confirmed;
    return (
      confirmed !== undefined &&
      elapsed - confirmed.elapsed < INSTANCE_LIFETIME &&
      time - confirmed.time < INSTANCE_LIFETIME
    );
  }

  async #checkSchema(): Promise<void> {
    if (this.#superseded !== undefined || this.#schema === undefined) return;
    const [row] = await readRows<{ readonly oldest: string | null }>(
      this.#services.db,
      sql`SELECT max("oldestBeside" COLLATE "C") AS "oldest" FROM "_migration"`,
    );
    const oldest = row?.oldest ?? "";
    if (oldest <= this.#schema) return;
    this.#superseded = new SupersededError(
      `A newer version of the service has migrated the database to a schema with which only the schemas ${oldest} and newer ` +
        `can run. This version has the schema ${this.#schema}. Start the newer version`,
    );
    this.#end.resolve(this.#superseded);
  }

  /**
   * Checks the schema after a heartbeat. If the previous heartbeat is too old, a migration that did not wait for this
   * instance may be in progress. In this case, the instance stays unconfirmed.
   * @param begun time before the heartbeat
   */
  async #confirm(begun: Moment): Promise<void> {
    if (this.#isConfirmed()) await this.#checkSchema();
    else if (!(await this.#isSchemaSettled())) return;
    this.#confirmed = begun;
  }

  /** Checks the schema, and returns true. If a migration holds the lock, returns false without a check. */
  async #isSchemaSettled(): Promise<boolean> {
    const [row] = await readRows<{ readonly free: boolean }>(
      this.#services.db,
      sql`SELECT pg_try_advisory_xact_lock_shared(${MIGRATION_LOCK}) AS "free"`,
    );
    if (row?.free !== true) return false;
    // The schema is read after the lock was free, so that the check includes every migration that held the lock.
    await this.#checkSchema();
    return true;
  }

  /** Records that the logins and tunnels of this instance have ended. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    try {
      await this.#clear([this.id], sql`1 = 1`);
    } catch (error) {
      this.#log().error(
        { err: error },
        "cannot record the end of this instance; other instances will record it",
      );
    }
  }

  /**
   * Connects to a device whose tunnel another instance holds.
   * @param session the id of the session that needs the connection
   * @throws UnreachableError no instance holds a tunnel, or the holder of the tunnel cannot be reached
   */
  async connect(uid: string, session: string): Promise<Duplex> {
    const device = await this.#services.db.device.findUnique({
      where: { uid },
      select: { instanceId: true },
    });
    const holder = device?.instanceId ?? undefined;
    if (holder === undefined || holder === this.id) throw new NotConnectedError();
    return this.#open(holder, `/internal/devices/${uid}/stream?session=${session}`);
  }

  /**
   * Connects to the instance that announced a connection. Used when an agent picks up the connection at this instance.
   * @throws UnreachableError the instance does not exist, or no longer has the connection
   */
  async passOn(instanceId: string, dial: string): Promise<Duplex> {
    return this.#open(instanceId, `/internal/dials/${encodeURIComponent(dial)}`);
  }

  async #open(instanceId: string, path: string): Promise<Duplex> {
    const peer = await this.#services.db.instance.findUnique({ where: { id: instanceId } });
    const access = this.#access;
    if (!peer?.peerUrl || access === undefined) {
      throw new UnreachableError("is connected to an instance that cannot be reached (GATEHOUSE_PEER_URL)");
    }
    const socket = new WebSocket(new URL(path, peer.peerUrl), {
      headers: { [internal.INTERNAL_TOKEN]: access.token },
      handshakeTimeout: PEER_TIMEOUT,
      maxPayload: liveConnections.STREAM_MESSAGE_MAX,
      perMessageDeflate: false,
    });
    // Create the stream before the handshake ends, because the first bytes may arrive together with the handshake's
    // response.
    const stream = streamOver(socket);
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => {
        this.#log().warn(
          { peer: peer.peerUrl, reason: error.message },
          "another instance did not connect to a device",
        );
        reject(new UnreachableError("is connected to an instance that did not respond"));
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
      this.#heartbeats = undefined;
      this.#log().error({ err: error }, "cannot write the heartbeat of this instance; retrying");
      // The heartbeat may have failed because the database has a newer schema.
      await this.#checkSchema().catch((cause: unknown) => {
        this.#log().error({ err: cause }, "cannot read the schema of the database; retrying");
      });
    }
  }

  /**
   * Writes the heartbeat of this instance. Clears the records of instances whose last heartbeat is older than
   * `INSTANCE_LIFETIME`. Heartbeats use the database's clock, because the clocks of instances differ. During a database
   * outage, no instance can write its heartbeat. So an instance clears the records of other instances only after its
   * own heartbeats have succeeded for `INSTANCE_LIFETIME`. On PostgreSQL, also checks whether this instance is
   * compatible with the schema of the database.
   */
  async sign(): Promise<void> {
    const { db } = this.#services;
    // Only one process at a time can use a SQLite file, so all other instances have ended.
    const alone = providerOf(db) === "sqlite";
    const now = alone ? sql`${this.#services.now()}` : databaseTime;
    const peerUrl = this.#access?.url ?? null;
    const begun = momentNow();
    await db.$executeRaw(
      sql`INSERT INTO "Instance" ("id", "peerUrl", "lastSeen", "schema")
        VALUES (${this.id}, ${peerUrl}, ${now}, ${this.#schema ?? null})
        ON CONFLICT ("id") DO UPDATE SET "peerUrl" = excluded."peerUrl", "lastSeen" = excluded."lastSeen"`,
    );
    await this.#confirm(begun);
    if (this.#superseded !== undefined) return;
    const signedAt = performance.now();
    const isUnbroken = this.#heartbeats !== undefined && signedAt - this.#heartbeats.last <= LONGEST_INTERVAL;
    this.#heartbeats = { first: (isUnbroken && this.#heartbeats?.first) || signedAt, last: signedAt };
    if (!alone && signedAt - this.#heartbeats.first < INSTANCE_LIFETIME) return;
    const late = alone
      ? sql`1 = 1`
      : sql`"lastSeen" < ${now} - make_interval(secs => ${INSTANCE_LIFETIME / 1000})`;
    const ended = await readRows<{ readonly id: string }>(
      db,
      sql`SELECT "id" FROM "Instance" WHERE "id" <> ${this.id} AND ${late}`,
    );
    if (ended.length > 0)
      await this.#clear(
        ended.map(({ id }) => id),
        late,
      );
  }

  /**
   * Closes the sessions and tunnels of instances that have ended, and deletes the rows of these instances.
   * @param which SQL condition for the rows to delete. The condition repeats the check that an instance has ended,
   *   because the instance may have sent a heartbeat since the first check.
   */
  async #clear(ids: string[], which: Sql): Promise<void> {
    const { db, now } = this.#services;
    const through = { instanceId: { in: ids } };
    await closeInterrupted(this.#services, sql`"instanceId" IN (${sql.list(ids)})`, now());
    const offline = { offline: true, instanceId: null, tunnelId: null };
    await retryConflicts(() => db.device.updateMany({ where: through, data: offline }));
    await db.$executeRaw(sql`DELETE FROM "Instance" WHERE "id" IN (${sql.list(ids)}) AND ${which}`);
  }
}
