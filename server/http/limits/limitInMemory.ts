import { RateLimitedError } from "../../errors.ts";
import type { MemoryCounts } from "./memoryCounts.ts";

/**
 * Counts a request in this process.
 * @param most maximum number of requests per window; 0 means no limit
 * @param time current time, in milliseconds since 1970
 * @throws RateLimitedError the maximum is exceeded
 */
export function limitInMemory(counts: MemoryCounts, key: string, most: number, time: number): void {
  if (most <= 0) return;
  const { count, endsAt } = counts.count(key, time);
  if (count > most) throw tooMany(endsAt, time);
}

/**
 * Returns the error for a request that exceeds its rate limit.
 * @param endsAt earliest time of a retry, in milliseconds since 1970 (the same unit as `time`)
 */
export function tooMany(endsAt: number, time: number): RateLimitedError {
  const seconds = Math.max(1, Math.ceil((endsAt - time) / 1000));
  return new RateLimitedError(`too many requests; try again in ${seconds} s`, {
    "Retry-After": String(seconds),
  });
}
