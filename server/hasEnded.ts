/** Maximum difference between the clocks of instances, in milliseconds. */
const SKEW = 60_000;

/**
 * Returns the latest possible end, in milliseconds since 1970, of a period that has already begun and has the given
 * length.
 */
export const latestEnd = (now: number, length: number): number => now + length + SKEW;

/**
 * Returns true if a period has ended. A period also counts as ended if its end is later than the latest possible end.
 * In that case, an instance with a fast clock began the period, and callers must not wait until other clocks reach that
 * time.
 * @param end in milliseconds since 1970, like `now`
 * @param length in milliseconds
 */
export const hasEnded = (end: number, now: number, length: number): boolean =>
  end <= now || end > latestEnd(now, length);
