import { MINUTE } from "@gatehouse-access/sdk/times";

/**
 * Maximum retry delay after the first failure, in milliseconds. The maximum doubles with each further failure, up to
 * `LAST_MAXIMUM`. Each delay is a random part of the current maximum. So after a restart of the service, 2,000 agents
 * reconnect at a rate of 400 per second. A single agent reconnects after 2.5 seconds on average.
 */
const FIRST_MAXIMUM = 5_000;
const LAST_MAXIMUM = 30_000;
/** Longest `Retry-After` time that the agent accepts from the service, in milliseconds. */
const LONGEST_REQUEST = 10 * MINUTE;

/** The delays between the connection attempts of an agent. */
export class ConnectionPauses {
  readonly #random: () => number;
  #maximum = FIRST_MAXIMUM;

  /** @param random returns a random number from 0 (included) to 1 (excluded) */
  constructor(random: () => number) {
    this.#random = random;
  }

  /**
   * Returns the delay before the next attempt, in milliseconds: the time that the service requests, plus a random time.
   * So agents that were refused at the same time do not reconnect at the same time.
   * @param retryAfter time that the service requests, in milliseconds; reduced to 10 minutes if it is longer
   */
  next(retryAfter = 0): number {
    const pause = Math.min(retryAfter, LONGEST_REQUEST) + this.#random() * this.#maximum;
    this.#maximum = Math.min(2 * this.#maximum, LAST_MAXIMUM);
    return pause;
  }

  /** Resets the maximum delay to its first value. */
  reset(): void {
    this.#maximum = FIRST_MAXIMUM;
  }
}
