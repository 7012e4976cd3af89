/** How far the clocks of instances may be apart, in milliseconds. */
const SKEW = 60_000;

/** The latest end, in milliseconds since 1970, of what lasts so long and has begun. */
export const latestEnd = (now: number, length: number): number => now + length + SKEW;

/**
 * Whether something that was to last for a time is over: also when it ends later than it could have if it began now. A
 * clock that was ahead began it, and nobody shall wait until that clock is right.
 * @param end in milliseconds since 1970, as `now`
 * @param length in milliseconds
 */
export const hasEnded = (end: number, now: number, length: number): boolean =>
  end <= now || end > latestEnd(now, length);
