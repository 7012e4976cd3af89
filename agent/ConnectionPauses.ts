import { MINUTE } from "@gatehouse-access/sdk/times";

/**
 * Maximum pause after the first failure, in milliseconds. The maximum doubles with each further failure, up to the
 * second value. The pause is a random part of the maximum. So 2,000 agents whose service restarts reconnect at a rate of
 * 400 a second, and a single agent reconnects after 2.5 seconds on average.
 */
const FIRST_MAXIMUM = 5_000;
const LAST_MAXIMUM = 30_000;
/** Maximum time that the service can request with `Retry-After`, in milliseconds. */
const LONGEST_REQUEST = 10 * MINUTE;

/** The pauses between the connection attempts of an agent. */
export class ConnectionPauses {
  readonly #random: () => number;
  #maximum = FIRST_MAXIMUM;

  /** @param random returns a random number from 0 (included) to 1 (excluded) */
  constructor(random: () => number) {
    this.#random = random;
  }

  /**
   * Returns the pause before the next attempt, in milliseconds. The random part is added to the requested time, so that
   * agents that the service refused at the same time do not return at the same time.
   * @param retryAfter time that the service requests, in milliseconds; at most 10 minutes count
   */
  next(retryAfter = 0): number {
    const pause = Math.min(retryAfter, LONGEST_REQUEST) + this.#random() * this.#maximum;
    this.#maximum = Math.min(2 * this.#maximum, LAST_MAXIMUM);
    return pause;
  }

  /** Begins with the first maximum again. */
  reset(): void {
    this.#maximum = FIRST_MAXIMUM;
  }
}
