import type { Duplex } from "node:stream";
import { MINUTE } from "@gatehouse-access/sdk/times";
import type { FastifyBaseLogger } from "fastify";
import { batchesOf, readRows, sql } from "../../db/sql/sql.ts";
import { inSqlTransaction } from "../../db/sql/transaction.ts";
import { closeInterrupted } from "../../features/sessions/interrupted.ts";
import type { Services } from "../../services.ts";
import type { LoginEnds } from "../protocol.ts";
import {
  checkLogins,
  type LoginFacts,
  type LoginPolicy,
  mergePolicies,
  readLoginPolicy,
} from "./checkLogins.ts";

interface LiveLogin extends LoginFacts {
  readonly startedAt: number;
  /** The expiry times that the service read most recently. */
  ends: LoginEnds;
  /**
   * Identifier of the policy state that last allowed the login. Undefined before the first policy check of the open
   * login.
   */
  policy: string | undefined;
  /** Connection to the device; undefined until the device is connected. */
  stream: Duplex | undefined;
  /**
   * True after the gateway process has received the request to end the login. During a database outage, the login's
   * session stays open longer than the login.
   */
  isEnding: boolean;
}

/**
 * Interval between two checks of all logins, in milliseconds. A login ends within a second after its session is
 * closed.
 */
const CHECK_INTERVAL = 500;
/**
 * Delay, in milliseconds, after which a login ends at an expiry time in memory, without a check against the database.
 * While the database responds, the check comes first, because the stored expiry time may have changed.
 */
const GRACE = 1_000;
/**
 * Interval, in milliseconds, after which logins are checked against the policy even if the audit trail contains no new
 * change. An audit entry can be committed after an entry with a higher id. The next check detects such a late entry if
 * its id is among the newest `LATE_ENTRIES` ids.
 */
const RECHECK = MINUTE;
const LATE_ENTRIES = 1_000;
/**
 * The operation that adds pending devices. Audit entries of this operation cause no check, because the operation
 * changes no policy and the enrollment of a fleet may take hours.
 */
const ENROLLMENT = "authDevice";
/** Interval at which the service marks open sessions as active, in milliseconds (rules section 17.3). */
const KEEP_ALIVE = 30_000;

/** Reasons that clients see. */
const REVOKED = "access was revoked";
const TIME_LIMIT = "the session has reached its time limit";

/** The end of a session that the database still lists as open. */
interface UnclosedSession {
  readonly at: Date;
  /**
   * True if the gateway process ended before the session did, so that the last entries of the session may be missing.
   */
  readonly isInterrupted: boolean;
}

/**
 * The logins that go through this instance. A login ends when its session is closed, when its device is no longer
 * accepted, when it reaches its time limit, or when the policy no longer allows it. If the database cannot be read, a
 * login still ends at its time limit and at the known expiry times of its access. If a firewall rule expires during
 * such an outage, the policy that was read last allows or ends each login. A login of a namespace whose policy was
 * never read ends.
 */
export class LiveLogins {
  readonly #services: Services;
  readonly #log: () => FastifyBaseLogger;
  readonly #endLogin: (uid: string, reason: string) => void;
  /** The logins, by the uids of their sessions. */
  readonly #live = new Map<string, LiveLogin>();
  /** Uids of sessions that are not written to the database yet. */
  readonly #beginning = new Set<string>();
  /** The sessions that have ended but that the database still lists as open, by uid. */
  readonly #unclosed = new Map<string, UnclosedSession>();
  readonly #timers: readonly NodeJS.Timeout[];
  #checking = false;
  /** The current attempt to close ended sessions. */
  #closing: Promise<void> | undefined;
  /** True while ended sessions cannot be closed. */
  #closeFails = false;
  /** True while checks fail. */
  #isFailing = false;
  /** The namespaces whose logins are being checked against the policy. */
  readonly #deciding = new Set<string>();
  /** The policy that was most recently read for the open logins of each namespace. */
  readonly #lastRead = new Map<string, LoginPolicy>();
  #whenNone: (() => void) | undefined;
  /**
   * The position in the audit trail from which changes are counted. Audit trail entries with an id greater than `after`
   * are treated as changes. `at` is the time, from `performance.now()`, at which `after` was set.
   */
  #counted = { after: 0, at: Number.NEGATIVE_INFINITY };

  /** @param endLogin ends a login in the gateway process. The gateway process then calls {@link end}. */
  constructor(
    services: Services,
    log: () => FastifyBaseLogger,
    endLogin: (uid: string, reason: string) => void,
  ) {
    this.#services = services;
    this.#log = log;
    this.#endLogin = endLogin;
    this.#timers = [
      setInterval(() => {
        this.#endPassed();
        void this.#check();
      }, CHECK_INTERVAL).unref(),
      setInterval(() => void this.#keepAlive(), KEEP_ALIVE).unref(),
    ];
  }

  get size(): number {
    return this.#live.size;
  }

  /**
   * Adds a login.
   * @param ends the expiry times that were known when the policy allowed the login
   * @param write writes the new session to the database
   */
  async begin(uid: string, facts: LoginFacts, ends: LoginEnds, write: () => Promise<unknown>): Promise<void> {
    this.#beginning.add(uid);
    const startedAt = this.#services.now().getTime();
    try {
      await write();
    } catch (error) {
      this.#beginning.delete(uid);
      throw error;
    }
    // If the uid is missing, the gateway process ended during the write. `endAll` has then closed all sessions except
    // this new one, so close it here.
    if (!this.#beginning.delete(uid)) await this.#close([uid], this.#services.now());
    else
      this.#live.set(uid, {
        ...facts,
        startedAt,
        ends,
        policy: undefined,
        stream: undefined,
        isEnding: false,
      });
  }

  /** Sets the connection to the device of a session. The connection ends with the session. */
  connected(uid: string, stream: Duplex): void {
    const login = this.#live.get(uid);
    if (login === undefined) stream.destroy();
    else login.stream = stream;
  }

  /** Returns the uid of a session's device. Returns undefined if the session does not go through this instance. */
  deviceOf(uid: string): string | undefined {
    return this.#live.get(uid)?.deviceUid;
  }

  /**
   * Ends a login and closes its session. If the session is already closed, its closing time does not change.
   * @param at time at which the session ended. It is in the past if the last entries of the session could not be
   *   written.
   */
  async end(uid: string, at = this.#services.now()): Promise<void> {
    const login = this.#live.get(uid);
    if (login === undefined) return;
    login.stream?.destroy();
    this.#live.delete(uid);
    this.#noteEnd();
    try {
      await this.#close([uid], at);
    } catch (error) {
      this.#unclosed.set(uid, { at, isInterrupted: false });
      throw error;
    }
  }

  /** Ends all logins, because the gateway process has ended. */
  async endAll(): Promise<void> {
    const at = this.#services.now();
    for (const [uid, { stream }] of this.#live) {
      stream?.destroy();
      this.#unclosed.set(uid, { at, isInterrupted: true });
    }
    this.#live.clear();
    this.#beginning.clear();
    this.#noteEnd();
    await this.#closeAll();
  }

  /**
   * Closes the sessions that have ended. Logs only the first of several consecutive failures. The next check tries
   * again.
   */
  async #closeAll(): Promise<void> {
    while (this.#closing !== undefined) await this.#closing;
    this.#closing = this.#tryCloseEnded();
    await this.#closing;
    this.#closing = undefined;
  }

  async #tryCloseEnded(): Promise<void> {
    try {
      await this.#closeEnded();
      this.#closeFails = false;
    } catch (error) {
      if (!this.#closeFails) this.#log().error({ err: error }, "cannot close sessions; retrying");
      this.#closeFails = true;
    }
  }

  async #closeEnded(): Promise<void> {
    const ended = Map.groupBy(
      this.#unclosed,
      ([, { at, isInterrupted }]) => `${at.getTime()} ${isInterrupted}`,
    );
    for (const sessions of ended.values()) {
      for (const batch of batchesOf(sessions)) {
        const uids = batch.map(([uid]) => uid);
        const [, { at, isInterrupted }] = batch[0] as (typeof batch)[number];
        if (isInterrupted) await closeInterrupted(this.#services, sql`"uid" IN (${sql.list(uids)})`, at);
        await this.#close(uids, at);
        for (const uid of uids) this.#unclosed.delete(uid);
      }
    }
  }

  /** Resolves when the last login has ended, but after `time` milliseconds at the latest. */
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

  async #close(uids: readonly string[], at: Date): Promise<void> {
    await inSqlTransaction(this.#services, "sessions", (tx) =>
      tx.$executeRaw(
        sql`UPDATE "Session" SET "instanceId" = NULL,
          "closedAt" = COALESCE("closedAt", ${at}) WHERE "uid" IN (${sql.list(uids)})`,
      ),
    );
  }

  async #check(): Promise<void> {
    if (this.#checking) return;
    this.#checking = true;
    try {
      for (const uids of batchesOf(this.#live.keys())) await this.#checkSessions(uids);
      if (this.#services.settings.endRefusedSessions && this.#live.size > 0) await this.#endRefused();
      if (this.#isFailing) this.#log().info("sessions are checked again");
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#log().error({ err: error }, "cannot check sessions; retrying at once");
      this.#isFailing = true;
    } finally {
      this.#checking = false;
    }
    await this.#closeAll();
  }

  /** Ends the logins whose known expiry times have passed, without access to the database. */
  #endPassed(): void {
    const now = this.#services.now().getTime() - GRACE;
    const time = this.#services.accessTime().getTime() - GRACE;
    const { endRefusedSessions } = this.#services.settings;
    const undecided = new Map<string, LiveLogin>();
    for (const [uid, login] of this.#live) {
      if (isOver(login.startedAt, login.ends, now)) this.#end(uid, TIME_LIMIT);
      else if (endRefusedSessions && login.ends.access <= time) this.#end(uid, REVOKED);
      else if (endRefusedSessions && !login.isEnding && login.ends.rule <= time) undecided.set(uid, login);
    }
    for (const [tenantId, logins] of Map.groupBy(undecided, ([, login]) => login.tenantId)) {
      if (!this.#deciding.has(tenantId)) this.#decide(tenantId, new Map(logins));
    }
  }

  /** Sends a request to end a login to the gateway process. */
  #end(uid: string, reason: string): void {
    const login = this.#live.get(uid);
    if (login !== undefined) login.isEnding = true;
    this.#endLogin(uid, reason);
  }

  /**
   * Checks logins against the policy that was most recently read for their namespace. If no policy was read, ends the
   * logins.
   */
  #decide(tenantId: string, logins: ReadonlyMap<string, LiveLogin>): void {
    const read = this.#lastRead.get(tenantId);
    if (read === undefined) {
      for (const uid of logins.keys()) this.#end(uid, REVOKED);
      return;
    }
    this.#decideBy({ ...read, at: this.#services.accessTime() }, tenantId, logins);
  }

  /**
   * Checks logins of a namespace in the background, so that other namespaces do not wait. The checks of a namespace
   * with many expensive rules take seconds.
   * @param policy identifier of the policy state that the check covers. If omitted, the next check evaluates the logins
   *   again.
   */
  #decideBy(
    read: LoginPolicy,
    tenantId: string,
    logins: ReadonlyMap<string, LiveLogin>,
    policy?: string,
  ): void {
    this.#deciding.add(tenantId);
    void this.#endRefusedOf(tenantId, logins, read, policy)
      .catch((error: unknown) => this.#logFailed(tenantId, error))
      .finally(() => this.#deciding.delete(tenantId));
  }

  #logFailed(tenantId: string, error: unknown): void {
    this.#log().error({ err: error, tenant: tenantId }, "cannot check sessions against the policy");
  }

  async #checkSessions(uids: readonly string[]): Promise<void> {
    const rows = await readRows<{ uid: string; startedAt: Date; maxMinutes: number }>(
      this.#services.db,
      sql`SELECT "Session"."uid" AS uid, "Session"."startedAt" AS "startedAt",
          "Namespace"."sessionMaxMinutes" AS "maxMinutes"
        FROM "Session" JOIN "Device" ON "Device"."uid" = "Session"."deviceUid"
          JOIN "Namespace" ON "Namespace"."tenantId" = "Session"."tenantId"
        WHERE "Session"."uid" IN (${sql.list(uids)}) AND "Session"."closedAt" IS NULL
          AND "Device"."status" = 'accepted'`,
    );
    const now = this.#services.now().getTime();
    const open = new Map(rows.map((row) => [row.uid, row]));
    for (const uid of uids) {
      const session = open.get(uid);
      const login = this.#live.get(uid);
      if (session === undefined) this.#end(uid, "the session was closed");
      else if (login !== undefined) {
        login.ends = { ...login.ends, maxMinutes: Number(session.maxMinutes) };
        if (isOver(session.startedAt.getTime(), login.ends, now)) this.#end(uid, TIME_LIMIT);
      }
    }
  }

  /**
   * Ends the logins that the policy no longer allows. The audit trail contains every change to the policy, so one fast
   * query returns the namespaces whose logins must be checked. The expiry of an object adds no audit trail entry, so
   * each login stores the next expiry time.
   */
  async #endRefused(): Promise<void> {
    const byTenant = Map.groupBy(this.#live, ([, { tenantId }]) => tenantId);
    for (const tenantId of this.#lastRead.keys()) {
      if (!byTenant.has(tenantId)) this.#lastRead.delete(tenantId);
    }
    const policies = await this.#policies([...byTenant.keys()]);
    const now = this.#services.accessTime().getTime();
    for (const [tenantId, logins] of byTenant) {
      const policy = policies.get(tenantId);
      const isChanged = ({ ends, policy: decided }: LiveLogin) =>
        decided !== policy || Math.min(ends.access, ends.rule) <= now;
      const changed = new Map(logins.filter(([, login]) => isChanged(login)));
      if (changed.size === 0 || this.#deciding.has(tenantId)) continue;
      // An error in one namespace does not stop the checks of other namespaces.
      try {
        const read = await readLoginPolicy(this.#services, tenantId, changed);
        const facts = logins.map(([, login]) => login);
        this.#lastRead.set(tenantId, mergePolicies(this.#lastRead.get(tenantId), read, facts));
        this.#decideBy(read, tenantId, changed, policy);
      } catch (error) {
        this.#logFailed(tenantId, error);
      }
    }
  }

  async #endRefusedOf(
    tenantId: string,
    logins: ReadonlyMap<string, LiveLogin>,
    read: LoginPolicy,
    policy: string | undefined,
  ): Promise<void> {
    // New logins of the namespace wait in a separate queue, so that they cannot delay these checks or cause them to be
    // rejected.
    const owner = `open logins of ${tenantId}`;
    const checks = await this.#services.decisions.run(owner, checkLogins(this.#services, read, logins));
    for (const [uid, login] of logins) {
      const { refusal, ends } = checks.get(uid) ?? {};
      // A refused login keeps its old policy state, so that each check ends the login again until the client has
      // disconnected.
      if (refusal === undefined) {
        login.policy = policy;
        login.ends = { ...login.ends, ...ends };
      } else {
        const facts = { session: uid, device: login.deviceUid, ...refusal };
        if (!login.isEnding)
          this.#log().info(facts, "ending a session: the policy no longer allows its login");
        this.#end(uid, REVOKED);
      }
    }
  }

  /**
   * Returns an identifier of each namespace's policy state. The identifier changes with every change to the policy.
   */
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
      for (const uids of batchesOf(this.#live.keys())) {
        const where = { uid: { in: uids }, closedAt: null };
        await this.#services.db.session.updateMany({ where, data: { lastSeen } });
      }
    } catch (error) {
      this.#log().error({ err: error }, "cannot mark sessions as active; retrying in 30 seconds");
    }
  }
}

const isOver = (startedAt: number, { maxMinutes }: LoginEnds, now: number): boolean =>
  maxMinutes > 0 && now >= startedAt + maxMinutes * MINUTE;
