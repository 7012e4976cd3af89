import type { FastifyBaseLogger } from "fastify";

/**
 * The namespaces whose recordings have reached their share of the quotas, according to the latest measurement. A login
 * reads this list, and does not wait for a query.
 */
export class FullRecordings {
  #refusing: ReadonlySet<string> = new Set();
  #refusesAll = false;
  /** The namespaces that were logged as full. */
  #reported: ReadonlySet<string> = new Set();
  #hasReportedAll = false;

  /** Returns true if the service refuses new recorded sessions in a namespace. */
  refuses(tenantId: string): boolean {
    return this.#refusesAll || this.#refusing.has(tenantId);
  }

  /**
   * Sets the namespaces in which the service refuses new recorded sessions.
   * @param all true to refuse them in all namespaces, including namespaces without recordings
   */
  refuse(tenants: readonly string[], all: boolean): void {
    this.#refusing = new Set(tenants);
    this.#refusesAll = all;
  }

  /**
   * Logs a message when a namespace reaches its quota, and when the namespace is within its quota again. Also logs when
   * the service starts and stops refusing sessions in all namespaces. Each message is logged once.
   * @param tenants the full namespaces that refuse sessions, or that have no recording that can be deleted
   */
  report(tenants: readonly string[], log: FastifyBaseLogger): void {
    const current = new Set(tenants);
    const reported = this.#reported;
    if (this.#refusesAll && !this.#hasReportedAll) {
      log.warn(
        "all recordings are twice as large as their quota; refusing new recorded sessions of all namespaces",
      );
    } else if (!this.#refusesAll && this.#hasReportedAll) {
      log.info("all recordings are smaller than twice their quota again");
    }
    this.#hasReportedAll = this.#refusesAll;
    for (const tenant of tenants.filter((one) => !reported.has(one))) {
      if (this.refuses(tenant)) {
        log.warn({ tenant }, "the recordings of a namespace are full; refusing its new sessions");
      } else {
        log.warn(
          { tenant },
          "the recordings of a namespace exceed their quota, but all are younger than an hour",
        );
      }
    }
    for (const tenant of [...reported].filter((one) => !current.has(one))) {
      log.info({ tenant }, "the recordings of a namespace are within their quota again");
    }
    this.#reported = current;
  }
}
