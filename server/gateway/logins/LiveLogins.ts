import type { Duplex } from "node:stream";
import type { FastifyBaseLogger } from "fastify";
import { batchesOf, readRows, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";
import { type LoginFacts, refusedLogins } from "./refusedLogins.ts";

interface LiveLogin extends LoginFacts {
  /** The state of the policy that has last admitted the login; undefined: the one at its beginning. */
  policy: string | undefined;
  /** Undefined until the device is connected. */
  stream: Duplex | undefined;
}

/** How often the service looks whether logins may go on, in milliseconds: they end within a second of being closed. */
const LOOK = 500;
/**
 * How often each login is checked against the policy although no change is in the audit trail, in milliseconds; and the
 * newest entries of the audit trail in which a late commit is still seen at once.
 */
const RECHECK = 60_000;
const LATE_ENTRIES = 1_000;
/** The operation that adds pending devices, which changes no policy; a fleet may enroll for hours. */
const ENROLLMENT = "authDevice";
/** How often it notes that they go on, in milliseconds (rules section 17.3). */
const KEEP_ALIVE = 30_000;

/**
 * The logins that go through this instance. One ends when its session is closed, by whichever instance, when its
 * device is no longer accepted, when it has lasted as long as it may, and when the policy would refuse it now.
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
  #whenNone: (() => void) | undefined;
  /** The audit entry after which changes are counted, and when it was taken, by `performance.now()`. */
  #counted = { after: 0, at: Number.NEGATIVE_INFINITY };

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
  async begin(uid: string, facts: LoginFacts, write: () => Promise<unknown>): Promise<void> {
    this.#beginning.add(uid);
    try {
      await write();
    } catch (error) {
      this.#beginning.delete(uid);
      throw error;
    }
    // The gateway process has ended meanwhile, and all of its sessions were closed.
    if (!this.#beginning.delete(uid)) await this.#close([uid]);
    else this.#live.set(uid, { ...facts, policy: undefined, stream: undefined });
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
    this.#noteEnd();
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
    this.#noteEnd();
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

  /** Settles once there is no login, or when a time in milliseconds is over. */
  async untilNone(time: number): Promise<void> {
    const none = Promise.withResolvers<void>();
    this.#whenNone = none.resolve;
    const timer = setTimeout(none.resolve, time);
    this.#noteEnd();
    await none.promise;
    clearTimeout(timer);
  }

  #noteEnd(): void {
    if (this.#live.size === 0) this.#whenNone?.();
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
      if (this.#services.settings.endRefusedSessions && this.#live.size > 0) await this.#endRefused();
    } catch (error) {
      this.#log().error({ err: error }, "sessions could not be checked; the next attempt follows at once");
    } finally {
      this.#looking = false;
    }
  }

  async #lookAt(uids: readonly string[]): Promise<void> {
    const rows = await readRows<{ uid: string; startedAt: Date; sessionMaxMinutes: number }>(
      this.#services.db,
      sql`SELECT "Session"."uid" AS uid, "Session"."startedAt" AS "startedAt",
          "Namespace"."sessionMaxMinutes" AS "sessionMaxMinutes"
        FROM "Session" JOIN "Device" ON "Device"."uid" = "Session"."deviceUid"
          JOIN "Namespace" ON "Namespace"."tenantId" = "Session"."tenantId"
        WHERE "Session"."uid" IN (${sql.list(uids)}) AND "Session"."closedAt" IS NULL
          AND "Device"."status" = 'accepted'`,
    );
    const now = this.#services.now().getTime();
    const open = new Map(rows.map((row) => [row.uid, row]));
    for (const uid of uids) {
      const session = open.get(uid);
      if (session === undefined) this.#tell(uid, "the session was closed");
      else if (isOver(session, now)) this.#tell(uid, "the session has lasted as long as it may");
    }
  }

  /**
   * Ends the logins that the policy would refuse now. Each change of it is in the audit trail, which shows at little cost
   * whose logins must be checked.
   */
  async #endRefused(): Promise<void> {
    const byTenant = Map.groupBy(this.#live, ([, { tenantId }]) => tenantId);
    const policies = await this.#policies([...byTenant.keys()]);
    for (const [tenantId, logins] of byTenant) {
      const policy = policies.get(tenantId);
      const changed = new Map(logins.filter(([, login]) => login.policy !== policy));
      if (changed.size === 0) continue;
      try {
        await this.#endRefusedOf(tenantId, changed, policy);
      } catch (error) {
        // The sessions of other namespaces are checked all the same.
        this.#log().error(
          { err: error, tenant: tenantId },
          "sessions could not be checked against the policy",
        );
      }
    }
  }

  async #endRefusedOf(
    tenantId: string,
    logins: ReadonlyMap<string, LiveLogin>,
    policy: string | undefined,
  ): Promise<void> {
    const refused = await refusedLogins(this.#services, tenantId, logins);
    for (const [uid, login] of logins) {
      const refusal = refused.get(uid);
      // A refused one is checked, and ended, again until it has left.
      if (refusal === undefined) login.policy = policy;
      else {
        const facts = { session: uid, device: login.deviceUid, ...refusal };
        this.#log().info(facts, "a session ends: the policy refuses its login now");
        this.#tell(uid, "access was revoked");
      }
    }
  }

  /** A name for the present state of the policy of each namespace, which every change of it changes. */
  async #policies(tenantIds: readonly string[]): Promise<Map<string, string>> {
    const { db } = this.#services;
    const now = performance.now();
    if (now - this.#counted.at >= RECHECK) {
      const [last] = await readRows<{ id: number | bigint | null }>(
        db,
        sql`SELECT MAX("id") AS id FROM "AuditEntry"`,
      );
      this.#counted = { after: Math.max(0, Number(last?.id ?? 0) - LATE_ENTRIES), at: now };
    }
    const { after, at } = this.#counted;
    const counts = await readRows<{ tenant: string | null; changes: number | bigint; last: number | bigint }>(
      db,
      sql`SELECT "tenantId" AS tenant, COUNT(*) AS changes, MAX("id") AS last FROM "AuditEntry"
        WHERE "id" > ${after} AND "operation" <> ${ENROLLMENT} AND ("tenantId" IS NULL OR "tenantId" IN (${sql.list(tenantIds)}))
        GROUP BY "tenantId"`,
    );
    const stateOf = (tenant: string | null) => {
      const row = counts.find((count) => count.tenant === tenant);
      return row === undefined ? "" : `${row.changes}/${row.last}`;
    };
    // Changes of users are of no namespace.
    const ofAll = `${at} ${stateOf(null)}`;
    return new Map(tenantIds.map((tenantId) => [tenantId, `${ofAll} ${stateOf(tenantId)}`]));
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

const isOver = (session: { startedAt: Date; sessionMaxMinutes: number }, now: number): boolean =>
  session.sessionMaxMinutes > 0 && now >= session.startedAt.getTime() + session.sessionMaxMinutes * 60_000;
