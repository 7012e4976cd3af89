/** One second, in milliseconds. */
export const SECOND = 1000;

/** One minute, in milliseconds. */
export const MINUTE = 60 * SECOND;

/** One hour, in milliseconds. */
export const HOUR = 60 * MINUTE;

/** One day of 24 hours, in milliseconds. */
export const DAY = 24 * HOUR;

/** Returns true if a text is a time, for example in RFC 3339. */
export const isTime = (text: string): boolean => !Number.isNaN(Date.parse(text));

/**
 * Returns true if a time in RFC 3339 has passed. A time passes at its own millisecond.
 *
 * A text that is not a time has passed, so access with an unreadable expiry time is refused. A caller that must not
 * hide such an object, for example a review, checks {@link isTime} first.
 */
export const hasPassed = (time: string, now: Date): boolean => !(Date.parse(time) > now.getTime());

/**
 * Returns a time in its canonical form, so that equal times have equal texts: RFC 3339 in UTC with milliseconds, for
 * example `2026-12-01T18:00:00.000Z`.
 * @throws RangeError if the text is not a time
 */
export const canonicalTime = (time: string): string => new Date(time).toISOString();
