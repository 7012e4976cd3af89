/** Allowed difference between the clocks of instances, in milliseconds. */
const SKEW = 60_000;

/** The latest possible end, in milliseconds since 1970, of something of this length that has begun. */
export const latestEnd = (now: number, length: number): number => now + length + SKEW;

/**
 * Whether a period has ended. It has also ended if its end is later than that of a period that begins now: a clock that
 * was ahead began it, and nobody shall wait until that clock is right.
 * @param end in milliseconds since 1970, like `now`
 * @param length in milliseconds
 */
export const hasEnded = (end: number, now: number, length: number): boolean =>
  end <= now || end > latestEnd(now, length);
