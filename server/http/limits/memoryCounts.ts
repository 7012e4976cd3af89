import { MINUTE } from "@gatehouse-access/sdk/times";
import { hasPeriodEnded } from "../../periods.ts";

/** The number of requests with one key in the current window. */
export interface Counted {
  readonly count: number;
  /** End time of the window, in milliseconds since 1970. */
  readonly endsAt: number;
}

/** Length of a window, in milliseconds. A window begins with the first counted request. */
export const WINDOW = MINUTE;

/**
 * Counts requests by key, in the memory of this process. Use this class for requests that are too frequent for one
 * database write per request.
 */
export class MemoryCounts {
  readonly #counts = new Map<string, number>();
  #endsAt = 0;

  /**
   * Counts a request with a key.
   * @param time current time, in milliseconds since 1970
   */
  count(key: string, time: number): Counted {
    // All keys share one window, so that the service can clear all counts together.
    if (hasPeriodEnded(this.#endsAt, time, WINDOW)) {
      this.#counts.clear();
      this.#endsAt = time + WINDOW;
    }
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return { count, endsAt: this.#endsAt };
  }
}

/**
 * Cache of keys that have exceeded their limit. During a flood of refused requests, the cache prevents database writes.
 */
export class Exhausted {
  readonly #until = new Map<string, number>();

  add(key: string, endsAt: number, time: number): void {
    for (const [known, end] of this.#until) {
      // Entries are in insertion order, and the loop stops at the first key whose window has not ended. An ended window
      // can therefore stay in the cache until all earlier windows have ended. This takes at most the length of one
      // window.
      if (!hasPeriodEnded(end, time, WINDOW)) break;
      this.#until.delete(known);
    }
    this.#until.delete(key);
    this.#until.set(key, endsAt);
  }

  /**
   * Returns the time, in milliseconds since 1970, at which requests with the key are allowed again. Returns undefined
   * if they are allowed now.
   */
  exhaustedUntil(key: string, time: number): number | undefined {
    const end = this.#until.get(key);
    return end !== undefined && !hasPeriodEnded(end, time, WINDOW) ? end : undefined;
  }
}
