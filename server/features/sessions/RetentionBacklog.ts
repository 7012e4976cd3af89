import type { FastifyBaseLogger } from "fastify";
import { readRows, type Sql, sql } from "../../db/sql/sql.ts";
import type { Services } from "../../services.ts";
import { retentionEnds } from "./retention.ts";

/**
 * Backlog above which the service logs a warning, in seconds. The backlog is the time for which expired recordings and
 * sessions have been waiting for deletion.
 */
const WARNING = 3600;

/** Measures how long expired recordings and sessions have been waiting for deletion. */
export class RetentionBacklog {
  readonly #services: Services;
  readonly #log: FastifyBaseLogger;
  #isLate = false;

  constructor(services: Services, log: FastifyBaseLogger) {
    this.#services = services;
    this.#log = log;
  }

  /**
   * Sets the metrics. Logs a warning when the backlog exceeds an hour, and a message when it is below an hour again.
   * The database uses an index to find the oldest session.
   */
  async measure(): Promise<void> {
    const { metrics } = this.#services;
    const ends = retentionEnds(this.#services);
    const recordings = await this.#secondsBefore(ends.recordings, sql`"recorded" = ${true}`);
    const sessions = Math.max(
      recordings === 0 ? 0 : await this.#secondsBefore(ends.sessions, sql`"recorded" = ${true}`),
      await this.#secondsBefore(ends.sessions, sql`"recorded" = ${false}`),
    );
    metrics.retentionBacklog.set({ kind: "recording" }, recordings);
    metrics.retentionBacklog.set({ kind: "session" }, sessions);
    const isLate = Math.max(recordings, sessions) > WARNING;
    if (isLate === this.#isLate) return;
    this.#isLate = isLate;
    const facts = { recordings: Math.round(recordings), sessions: Math.round(sessions) };
    if (isLate) {
      this.#log.warn(
        facts,
        "sessions or recordings exceed their retention by more than an hour (in seconds)",
      );
    } else this.#log.info(facts, "sessions and recordings are deleted in time again");
  }

  /**
   * Returns the number of seconds between the oldest session and a time. Returns 0 if no session is older than this
   * time.
   */
  async #secondsBefore(end: Date | undefined, condition: Sql): Promise<number> {
    if (end === undefined) return 0;
    const [oldest] = await readRows<{ readonly lastSeen: Date }>(
      this.#services.db,
      sql`SELECT "lastSeen" FROM "Session" WHERE ${condition} AND "lastSeen" < ${end} ORDER BY "lastSeen" LIMIT 1`,
    );
    return oldest === undefined ? 0 : (end.getTime() - oldest.lastSeen.getTime()) / 1000;
  }
}
