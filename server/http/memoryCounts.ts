import { RateLimitedError } from "../errors.ts";
import { hasEnded } from "./hasEnded.ts";

/** Requests counted under one key since its window began. */
export interface Counted {
  readonly count: number;
  /** When the window ends, in milliseconds since 1970. */
  readonly endsAt: number;
}

/** Length of a window, in milliseconds. It begins with the first request that is counted. */
export const WINDOW = 60_000;

/** Counts in this process alone: for what is too frequent for a write to the database each time. */
export class MemoryCounts {
  readonly #counts = new Map<string, number>();
  #endsAt = 0;

  /** @param time in milliseconds since 1970 */
  count(key: string, time: number): Counted {
    // One window for all keys, so that forgetting them costs nothing.
    if (hasEnded(this.#endsAt, time, WINDOW)) {
      this.#counts.clear();
      this.#endsAt = time + WINDOW;
    }
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return { count, endsAt: this.#endsAt };
  }
}

/** Keys that are known to be over their limit: a flood of refused requests then costs no writes. */
export class Exhausted {
  readonly #until = new Map<string, number>();

  add(key: string, endsAt: number, time: number): void {
    for (const [known, end] of this.#until) if (hasEnded(end, time, WINDOW)) this.#until.delete(known);
    this.#until.set(key, endsAt);
  }

  /** When the key may be used again, in milliseconds since 1970; undefined for one that may be used now. */
  endOf(key: string, time: number): number | undefined {
    const end = this.#until.get(key);
    return end !== undefined && !hasEnded(end, time, WINDOW) ? end : undefined;
  }
}

/**
 * Counts a request in this process.
 * @param most in a window; 0: any number
 * @param time in milliseconds since 1970
 * @throws RateLimitedError there were as many already
 */
export function limitInMemory(counts: MemoryCounts, key: string, most: number, time: number): void {
  if (most <= 0) return;
  const { count, endsAt } = counts.count(key, time);
  if (count > most) throw tooMany(endsAt, time);
}

/**
 * The refusal of a request that comes too often.
 * @param endsAt when it may come again, in milliseconds since 1970, as `time`
 */
export function tooMany(endsAt: number, time: number): RateLimitedError {
  const seconds = Math.max(1, Math.ceil((endsAt - time) / 1000));
  return new RateLimitedError(`too many requests, try again in ${seconds} s`, {
    "Retry-After": String(seconds),
  });
}
