import { hasEnded } from "../../hasEnded.ts";

/** The number of requests under one key in the present window. */
export interface Counted {
  readonly count: number;
  /** End time of the window, in milliseconds since 1970. */
  readonly endsAt: number;
}

/** Length of a window, in milliseconds; it begins with the first counted request. */
export const WINDOW = 60_000;

/** Counters in this process only, for requests that are too frequent for one database write each. */
export class MemoryCounts {
  readonly #counts = new Map<string, number>();
  #endsAt = 0;

  /**
   * Counts a request under a key.
   * @param time in milliseconds since 1970
   */
  count(key: string, time: number): Counted {
    // One window for all keys, so that clearing them costs nothing.
    if (hasEnded(this.#endsAt, time, WINDOW)) {
      this.#counts.clear();
      this.#endsAt = time + WINDOW;
    }
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return { count, endsAt: this.#endsAt };
  }
}

/** Cache of keys over their limit, so that a flood of refused requests causes no database writes. */
export class Exhausted {
  readonly #until = new Map<string, number>();

  add(key: string, endsAt: number, time: number): void {
    for (const [known, end] of this.#until) {
      // Entries are in insertion order. An ended key behind a current key stays until the current key ends, at most
      // one window.
      if (!hasEnded(end, time, WINDOW)) break;
      this.#until.delete(known);
    }
    this.#until.delete(key);
    this.#until.set(key, endsAt);
  }

  /**
   * Returns the time from which the key may be used again, in milliseconds since 1970; undefined if it may be used
   * now.
   */
  endOf(key: string, time: number): number | undefined {
    const end = this.#until.get(key);
    return end !== undefined && !hasEnded(end, time, WINDOW) ? end : undefined;
  }
}
