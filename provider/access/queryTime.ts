import { z } from "zod";

const rfc3339 = z.union([
  z.iso.datetime({ offset: true }),
  // Without seconds.
  z.iso.datetime({ offset: true, precision: -1 }),
]);

/** The form of a time in a query, as the end of an error. */
export const TIME_FORM =
  "must be a time with an offset, such as 2026-12-01T18:00Z or 2026-12-01T18:00:00+01:00";

/**
 * Returns the time of a query: RFC 3339, in which the seconds can be omitted. Undefined for other texts. A date alone, or
 * a time without an offset, would depend on the time zone of the reader.
 */
export function readTime(text: string): Date | undefined {
  const time = new Date(rfc3339.safeParse(text).data ?? Number.NaN);
  return Number.isNaN(time.getTime()) ? undefined : time;
}
