import type { Duplex } from "node:stream";
import type { FastifyBaseLogger } from "fastify";
import { batchesOf, readRows, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";
import { checkLogins, type LoginFacts, readLoginPolicy } from "./checkLogins.ts";

interface LiveLogin extends LoginFacts {
  /**
   * Identifier of the policy state that last admitted the login; undefined before the first policy check of the open
   * login.
   */
  policy: string | undefined;
  /** Time of the next end that can change the decision about the login, in milliseconds since 1970. */
  nextEnd: number;
  /** Connection to the device; undefined until the device is connected. */
  stream: Duplex | undefined;
}

/**
 * Interval between two checks of all logins, in milliseconds. A login ends within a second after its session is
 * closed.
 */
const CHECK_INTERVAL = 500;
/**
 * Interval, in milliseconds, after which logins are checked against the policy again although the audit trail contains
 * no change. An audit entry can be committed after an entry with a higher id. The next check detects such a late entry
 * if its id is among the newest `LATE_ENTRIES` ids.
 */
const RECHECK = 60_000;
const LATE_ENTRIES = 1_000;
/**
 * The operation that adds pending devices. Audit entries of this operation cause no check, because it changes no policy
 * and a fleet may enroll for hours.
 */
const ENROLLMENT = "authDevice";
/** Interval at which the service marks open sessions as active, in milliseconds (rules section 17.3). */
const KEEP_ALIVE = 30_000;

/**
 * The logins that go through this instance. A login ends when an instance closes its session, when its device is no
 * longer accepted, when it reaches its time limit, or when the policy no longer allows it.
 */
export class LiveLogins {
  readonly #services: Services;
  readonly #log: () => FastifyBaseLogger;
  readonly #endLogin: (uid: string, reason: string) => void;
  /** The logins, by the uids of their sessions. */
  readonly #live = new Map<string, LiveLogin>();
  /** Uids of sessions that are not written to the database yet. */
  readonly #beginning = new Set<string>();
  /** Uids of sessions that have ended and that the database does not yet show as closed. */
  readonly #unclosed = new Set<string>();
  readonly #timers: readonly NodeJS.Timeout[];
  #checking = false;
  /** The namespaces whose logins are being checked against the policy. */
  readonly #deciding = new Set<string>();
  #whenNone: (() => void) | undefined;
  /**
   * Audit entries with an id above `after` count as changes. `at` is the time, from `performance.now()`, at which
   * `after` was set.
   */
  #counted = { after: 0, at: Number.NEGATIVE_INFINITY };

  /** @param endLogin ends a login in the gateway process, which then calls {@link end} */
  constructor(
    services: Services,
    log: () => FastifyBaseLogger,
    endLogin: (uid: string, reason: string) => void,
  ) {
    this.#services = services;
    this.#log = log;
    this.#endLogin = endLogin;
    this.#timers = [
      setInterval(() => void this.#check(), CHECK_INTERVAL).unref(),
      setInterval(() => void this.#keepAlive(), KEEP_ALIVE).unref(),
    ];
  }

  get size(): number {
    return this.#live.size;
  }

  /**
   * Adds a login.
   * @param write writes the new session to the database
   */
  async begin(uid: string, facts: LoginFacts, write: () => Promise<unknown>): Promise<void> {
    this.#beginning.add(uid);
    try {
      await write();
    } catch (error) {
      this.#beginning.delete(uid);
      throw error;
    }
    // If the uid is missing, the gateway process ended during the write. `endAll` has then closed all sessions except
    // this one, so this session is closed here.
    if (!this.#beginning.delete(uid)) await this.#close([uid]);
    else this.#live.set(uid, { ...facts, policy: undefined, nextEnd: Infinity, stream: undefined });
  }

  /** Sets the connection to the device of a session. The connection ends with the session. */
  connected(uid: string, stream: Duplex): void {
    const login = this.#live.get(uid);
    if (login === undefined) stream.destroy();
    else login.stream = stream;
  }

  /** The uid of a session's device; undefined if the session does not go through this instance. */
  deviceOf(uid: string): string | undefined {
    return this.#live.get(uid)?.deviceUid;
  }

  /** Ends a login and closes its session. If the session is already closed, its closing time does not change. */
  async end(uid: string): Promise<void> {
    const login = this.#live.get(uid);
    if (login === undefined) return;
    login.stream?.destroy();
    this.#live.delete(uid);
    this.#unclosed.add(uid);
    this.#noteEnd();
    await this.#closeAll();
  }

  /** Ends all logins, because the gateway process has ended. */
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
      this.#log().error({ err: error }, "cannot close sessions; retrying in 30 seconds");
    }
  }

  /**
   * Closes the sessions that have ended.
   * @throws DriverAdapterError some sessions are still not closed
   */
  async #closeAll(): Promise<void> {
    for (const uids of batchesOf(this.#unclosed)) {
      await this.#close(uids);
      for (const uid of uids) this.#unclosed.delete(uid);
    }
  }

  /** Settles when the last login has ended, at the latest after `time` milliseconds. */
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

  /** Stops the periodic checks. */
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

  async #check(): Promise<void> {
    if (this.#checking) return;
    this.#checking = true;
    try {
      for (const uids of batchesOf(this.#live.keys())) await this.#checkSessions(uids);
      if (this.#services.settings.endRefusedSessions && this.#live.size > 0) await this.#endRefused();
    } catch (error) {
      this.#log().error({ err: error }, "cannot check sessions; retrying at once");
    } finally {
      this.#checking = false;
    }
  }

  async #checkSessions(uids: readonly string[]): Promise<void> {
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
      if (session === undefined) this.#endLogin(uid, "the session was closed");
      else if (isOver(session, now)) this.#endLogin(uid, "the session has reached its time limit");
    }
  }

  /**
   * Ends the logins that the policy no longer allows. The audit trail contains every change of the policy, so that one
   * fast query returns the namespaces whose logins must be checked. The audit trail contains no entry when an object
   * expires, so each login has the time of the next end.
   */
  async #endRefused(): Promise<void> {
    const byTenant = Map.groupBy(this.#live, ([, { tenantId }]) => tenantId);
    const policies = await this.#policies([...byTenant.keys()]);
    const now = this.#services.accessTime().getTime();
    for (const [tenantId, logins] of byTenant) {
      const policy = policies.get(tenantId);
      const changed = new Map(logins.filter(([, login]) => login.policy !== policy || login.nextEnd <= now));
      if (changed.size === 0 || this.#deciding.has(tenantId)) continue;
      // An error in one namespace does not stop the checks of other namespaces.
      const failed = (error: unknown) =>
        this.#log().error({ err: error, tenant: tenantId }, "cannot check sessions against the policy");
      try {
        const read = await readLoginPolicy(this.#services, tenantId, changed);
        // The checks of a namespace with many expensive rules take seconds. The other namespaces do not wait for them.
        this.#deciding.add(tenantId);
        void this.#endRefusedOf(tenantId, changed, read, policy)
          .catch(failed)
          .finally(() => this.#deciding.delete(tenantId));
      } catch (error) {
        failed(error);
      }
    }
  }

  async #endRefusedOf(
    tenantId: string,
    logins: ReadonlyMap<string, LiveLogin>,
    read: Awaited<ReturnType<typeof readLoginPolicy>>,
    policy: string | undefined,
  ): Promise<void> {
    // New logins of the namespace wait separately, so that they can neither delay nor refuse these checks.
    const owner = `open logins of ${tenantId}`;
    const checks = await this.#services.decisions.run(owner, checkLogins(this.#services, read, logins));
    for (const [uid, login] of logins) {
      const { refusal, nextEnd = Infinity } = checks.get(uid) ?? {};
      // A refused login keeps its old policy state, so that each check ends it again until the client has disconnected.
      if (refusal === undefined) Object.assign(login, { policy, nextEnd });
      else {
        const facts = { session: uid, device: login.deviceUid, ...refusal };
        this.#log().info(facts, "ending a session: the policy no longer allows its login");
        this.#endLogin(uid, "access was revoked");
      }
    }
  }

  /** Returns an identifier of each namespace's policy state. Every change of the policy changes the identifier. */
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
    // Audit entries about users have no namespace, so they change the identifiers of all namespaces.
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
      this.#log().error({ err: error }, "cannot mark sessions as active; retrying in 30 seconds");
    }
  }
}

const isOver = (session: { startedAt: Date; sessionMaxMinutes: number }, now: number): boolean =>
  session.sessionMaxMinutes > 0 && now >= session.startedAt.getTime() + session.sessionMaxMinutes * 60_000;
