import { databaseTime, providerOf, readRows, sql } from "../db/sql/sql.ts";
import type { Services } from "../services.ts";

/**
 * Maximum duration of a measurement, in milliseconds. A measurement that takes longer does not replace an earlier one.
 */
const LONGEST_MEASUREMENT = 1000;

/**
 * The clock by which access expires. On PostgreSQL, all instances use the time of the database. The clock measures that
 * time, and uses the process's monotonic clock between two measurements. On SQLite, only one process uses the database,
 * and the clock uses the time of the host.
 *
 * The time never goes back, so that expired access does not become valid again when the clock of a host is set back. If
 * the time is wrongly ahead, a restart of the service corrects it.
 */
export class AccessClock {
  readonly #services: Pick<Services, "db" | "now">;
  /** The last measured time of the database, and the result of `performance.now()` at the measurement. */
  #measured: { readonly time: number; readonly at: number } | undefined;
  #highest = Number.NEGATIVE_INFINITY;

  constructor(services: Pick<Services, "db" | "now">) {
    this.#services = services;
  }

  /** Returns the current time. */
  readonly time = (): Date => {
    const measured = this.#measured;
    const present = measured
      ? measured.time + performance.now() - measured.at
      : this.#services.now().getTime();
    this.#highest = Math.max(this.#highest, present);
    return new Date(this.#highest);
  };

  /** Measures the time of a PostgreSQL database. Has no effect on SQLite. */
  async measure(): Promise<void> {
    const { db } = this.#services;
    if (providerOf(db) === "sqlite") return;
    // Count from the start of the request, so that the clock is never behind the database.
    const at = performance.now();
    const [row] = await readRows<{ readonly time: Date }>(db, sql`SELECT ${databaseTime} AS "time"`);
    if (row === undefined) throw new Error("the database returned no time");
    if (this.#measured && performance.now() - at > LONGEST_MEASUREMENT) return;
    this.#measured = { time: row.time.getTime(), at };
  }
}
