import type { Duplex } from "node:stream";
import type { FastifyBaseLogger } from "fastify";
import { readRows } from "../../db/readRows.ts";
import { sql } from "../../db/sql.ts";
import { inSqlTransaction } from "../../db/transaction.ts";
import type { Services } from "../../services.ts";

interface LiveLogin {
  readonly deviceUid: string;
  /** Undefined until the device is connected. */
  stream: Duplex | undefined;
}

/** How often the service looks whether logins may go on, in milliseconds: they end within a second of being closed. */
const LOOK = 500;
/** How often it notes that they go on, in milliseconds (rules section 17.3). */
const KEEP_ALIVE = 30_000;
/** Logins per statement: other users of the database wait for no longer than one statement takes. */
const BATCH = 250;

/**
 * The logins that go through this instance. One ends when its session is closed, by whichever instance, or when its
 * device is no longer accepted.
 */
export class LiveLogins {
  readonly #services: Services;
  readonly #log: () => FastifyBaseLogger;
  readonly #tell: (uid: string, reason: string) => void;
  /** By the uids of their sessions. */
  readonly #live = new Map<string, LiveLogin>();
  /** Sessions that are not written yet. */
  readonly #beginning = new Set<string>();
  /** Sessions that have ended, and could not be closed. */
  readonly #unclosed = new Set<string>();
  readonly #timers: readonly NodeJS.Timeout[];
  #looking = false;

  /** @param tell ends a login in the gateway process, which then calls {@link end} */
  constructor(services: Services, log: () => FastifyBaseLogger, tell: (uid: string, reason: string) => void) {
    this.#services = services;
    this.#log = log;
    this.#tell = tell;
    this.#timers = [
      setInterval(() => void this.#look(), LOOK).unref(),
      setInterval(() => void this.#keepAlive(), KEEP_ALIVE).unref(),
    ];
  }

  get size(): number {
    return this.#live.size;
  }

  /** @param write writes that the session begins */
  async begin(uid: string, deviceUid: string, write: () => Promise<unknown>): Promise<void> {
    this.#beginning.add(uid);
    try {
      await write();
    } catch (error) {
      this.#beginning.delete(uid);
      throw error;
    }
    // The gateway process has ended meanwhile, and all of its sessions were closed.
    if (!this.#beginning.delete(uid)) await this.#close([uid]);
    else this.#live.set(uid, { deviceUid, stream: undefined });
  }

  /** The connection to the device of a session, which ends with the session. */
  connected(uid: string, stream: Duplex): void {
    const login = this.#live.get(uid);
    if (login === undefined) stream.destroy();
    else login.stream = stream;
  }

  /** The uid of a session's device; undefined: the session does not go through this instance. */
  deviceOf(uid: string): string | undefined {
    return this.#live.get(uid)?.deviceUid;
  }

  /** A login has ended: closes its session. One that was closed before keeps its time. */
  async end(uid: string): Promise<void> {
    const login = this.#live.get(uid);
    if (login === undefined) return;
    login.stream?.destroy();
    this.#live.delete(uid);
    this.#unclosed.add(uid);
    await this.#closeAll();
  }

  /** All logins have ended, with the gateway process. */
  async endAll(): Promise<void> {
    for (const [uid, { stream }] of this.#live) {
      stream?.destroy();
      this.#unclosed.add(uid);
    }
    this.#live.clear();
    this.#beginning.clear();
    try {
      await this.#closeAll();
    } catch (error) {
      this.#log().error({ err: error }, "sessions could not be closed, and will be in 30 seconds");
    }
  }

  /** @throws DriverAdapterError some are still unclosed */
  async #closeAll(): Promise<void> {
    for (const uids of batchesOf(this.#unclosed)) {
      await this.#close(uids);
      for (const uid of uids) this.#unclosed.delete(uid);
    }
  }

  /** Ends the checks. */
  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  async #close(uids: readonly string[]): Promise<void> {
    await inSqlTransaction(this.#services, "sessions", (tx) =>
      tx.$executeRaw(
        sql`UPDATE "Session" SET "instanceId" = NULL,
          "closedAt" = COALESCE("closedAt", ${this.#services.now()}) WHERE "uid" IN (${sql.list(uids)})`,
      ),
    );
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      for (const uids of batchesOf(this.#live.keys())) await this.#lookAt(uids);
    } catch (error) {
      this.#log().error({ err: error }, "it could not be seen whether sessions were closed");
    } finally {
      this.#looking = false;
    }
  }

  async #lookAt(uids: readonly string[]): Promise<void> {
    const rows = await readRows<{ readonly uid: string }>(
      this.#services.db,
      sql`SELECT "Session"."uid" AS uid FROM "Session" JOIN "Device" ON "Device"."uid" = "Session"."deviceUid"
        WHERE "Session"."uid" IN (${sql.list(uids)}) AND "Session"."closedAt" IS NULL
          AND "Device"."status" = 'accepted'`,
    );
    const open = new Set(rows.map(({ uid }) => uid));
    for (const uid of uids) {
      if (!open.has(uid)) this.#tell(uid, "the session was closed");
    }
  }

  async #keepAlive(): Promise<void> {
    const lastSeen = this.#services.now();
    try {
      await this.#closeAll();
      for (const uids of batchesOf(this.#live.keys())) {
        const where = { uid: { in: uids }, closedAt: null };
        await this.#services.db.session.updateMany({ where, data: { lastSeen } });
      }
    } catch (error) {
      this.#log().error({ err: error }, "sessions could not be kept alive, and will be in 30 seconds");
    }
  }
}

function* batchesOf(all: Iterable<string>): Generator<string[]> {
  const uids = [...all];
  for (let start = 0; start < uids.length; start += BATCH) yield uids.slice(start, start + BATCH);
}
