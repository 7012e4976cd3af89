/** One second, in milliseconds. */
export const SECOND = 1000;

/** One minute, in milliseconds. */
export const MINUTE = 60 * SECOND;

/** One hour, in milliseconds. */
export const HOUR = 60 * MINUTE;

/** One day of 24 hours, in milliseconds. */
export const DAY = 24 * HOUR;

/** Returns true if a string is a time, for example in RFC 3339 format. */
export const isTime = (text: string): boolean => !Number.isNaN(Date.parse(text));

/**
 * Returns true if a time in RFC 3339 format has passed. The result is already true in the millisecond of the time
 * itself.
 *
 * A string that is not a time is treated as a time that has passed, so that access with an unreadable expiry time is
 * refused. A caller that must not hide such an object, for example a review, checks {@link isTime} first.
 */
export const hasPassed = (time: string, now: Date): boolean => !(Date.parse(time) > now.getTime());

/**
 * Returns a time in its canonical form, so that equal times are equal strings: RFC 3339 in UTC with milliseconds, for
 * example `2026-12-01T18:00:00.000Z`.
 * @throws RangeError if the string is not a time
 */
export const canonicalTime = (time: string): string => new Date(time).toISOString();
