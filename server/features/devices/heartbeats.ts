import type { PrismaClient } from "../../db/generated/sqlite/client.ts";
import { batchesOf } from "../../db/sql/sql.ts";
import { retryConflicts } from "../../db/sql/transaction.ts";

/**
 * Maximum delay, in milliseconds, before the service stores the time of a report that contains no changes: see
 * `docs/reference/server-settings.md`.
 */
export const HEARTBEAT_DELAY = 2000;

/**
 * Collects device reports that contain no changes to the device, and writes their times in batches. A write changes
 * only `lastSeen`, and never sets it to an earlier time. A device that was marked offline after its report stays
 * offline, and a deleted device stays deleted. Reports from the same second get the same `lastSeen`.
 */
export class Heartbeats {
  readonly #db: Pick<PrismaClient, "device">;
  readonly #onError: (error: unknown) => void;
  #pending = new Map<string, Date>();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  /**
   * @param onError called with the error if the reports cannot be written. The reports are kept for the next attempt.
   */
  constructor(db: Pick<PrismaClient, "device">, onError: (error: unknown) => void) {
    this.#db = db;
    this.#onError = onError;
  }

  /** Records that the device reported. */
  beat(uid: string, time: Date): void {
    this.#pending.set(uid, time);
    this.#schedule();
  }

  /** Writes the pending reports. Called at shutdown, after the last request. Rejects if the write fails. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const run = this.#running.then(() => this.#write());
    // Each run reports its error to its own caller. The next run starts even if the previous run failed.
    this.#running = run.catch(() => {});
    return run;
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.flush().catch((error: unknown) => {
        this.#onError(error);
        this.#schedule();
      });
    }, HEARTBEAT_DELAY).unref();
  }

  async #write(): Promise<void> {
    const pending = this.#pending;
    this.#pending = new Map();
    try {
      for (const { uids, time } of bySecond(pending)) {
        const where = { uid: { in: uids }, lastSeen: { lt: time } };
        await retryConflicts(() => this.#db.device.updateMany({ where, data: { lastSeen: time } }));
        for (const uid of uids) pending.delete(uid);
      }
    } catch (error) {
      this.#pending = new Map([...pending, ...this.#pending]);
      throw error;
    }
  }
}

/** Returns the reports in batches. All reports from the same second get the latest time in that second. */
function bySecond(reports: ReadonlyMap<string, Date>): { uids: string[]; time: Date }[] {
  const seconds = Map.groupBy(reports, ([, time]) => Math.floor(time.getTime() / 1000));
  return [...seconds.values()].flatMap((group) => {
    const time = new Date(Math.max(...group.map(([, reported]) => reported.getTime())));
    // All instances write the rows in the same order, so that two instances rarely wait for each other.
    const uids = group.map(([uid]) => uid).sort();
    return [...batchesOf(uids)].map((batch) => ({ uids: batch, time }));
  });
}
