import type { FastifyBaseLogger } from "fastify";
import { readRows } from "../../db/readRows.ts";
import { sql } from "../../db/sql.ts";
import type { Services } from "../../services.ts";

/** A login that goes on. */
interface LiveLogin {
  /** Uid of its session. */
  readonly uid: string;
  /** Ends it, and tells its client why. */
  end(reason: string): void;
  /** Settles once its session is closed. */
  finish(): Promise<void>;
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
  readonly #live = new Map<string, LiveLogin>();
  readonly #timers: readonly NodeJS.Timeout[];
  #looking = false;

  constructor(services: Services, log: () => FastifyBaseLogger) {
    this.#services = services;
    this.#log = log;
    this.#timers = [
      setInterval(() => void this.#look(), LOOK).unref(),
      setInterval(() => void this.#keepAlive(), KEEP_ALIVE).unref(),
    ];
  }

  get size(): number {
    return this.#live.size;
  }

  add(login: LiveLogin): void {
    this.#live.set(login.uid, login);
  }

  delete(login: LiveLogin): void {
    this.#live.delete(login.uid);
  }

  /** Ends all of them, and settles once their sessions are closed. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    const all = [...this.#live.values()];
    for (const login of all) login.end("the service is being stopped");
    await Promise.all(all.map((login) => login.finish()));
  }

  *#batches(): Generator<string[]> {
    const uids = [...this.#live.keys()];
    for (let start = 0; start < uids.length; start += BATCH) yield uids.slice(start, start + BATCH);
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      for (const uids of this.#batches()) await this.#lookAt(uids);
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
      if (!open.has(uid)) this.#live.get(uid)?.end("the session was closed");
    }
  }

  async #keepAlive(): Promise<void> {
    const lastSeen = this.#services.now();
    try {
      for (const uids of this.#batches()) {
        const where = { uid: { in: uids }, closedAt: null };
        await this.#services.db.session.updateMany({ where, data: { lastSeen } });
      }
    } catch (error) {
      this.#log().error({ err: error }, "sessions could not be kept alive, and will be in 30 seconds");
    }
  }
}
