import { MINUTE } from "@gatehouse-access/sdk/times";

/** Maximum difference between the clocks of instances, in milliseconds. */
const SKEW = MINUTE;

/**
 * Returns the latest possible end of a period that has already begun and has the given length. The result is in
 * milliseconds since 1970.
 */
export const latestEnd = (now: number, length: number): number => now + length + SKEW;

/**
 * Returns true if a period has ended. Also returns true if the end is later than the result of {@link latestEnd},
 * because such an end was computed with a clock that was too far ahead. Without this rule, callers would wait until
 * their own clock reaches that end.
 * @param end in milliseconds since 1970, like `now`
 * @param length in milliseconds
 */
export const hasPeriodEnded = (end: number, now: number, length: number): boolean =>
  end <= now || end > latestEnd(now, length);
