import { z } from "zod";

const rfc3339 = z.union([
  z.iso.datetime({ offset: true }),
  // Without seconds.
  z.iso.datetime({ offset: true, precision: -1 }),
]);

/**
 * Returns the time of a query. Accepts a `Date`, or a string in RFC 3339, in which the seconds can be omitted. Rejects
 * a date alone and a time without an offset, since their meaning depends on the time zone of the reader.
 * @param refuse returns the error for a rejected value
 */
export function queryTime(given: unknown, refuse: (detail: string) => Error): Date {
  const time = new Date(given instanceof Date ? given : (rfc3339.safeParse(given).data ?? Number.NaN));
  if (!Number.isNaN(time.getTime())) return time;
  const forms = "2026-12-01T18:00Z or 2026-12-01T18:00:00+01:00";
  throw refuse(`must be a time with an offset, such as ${forms}, not ${String(given)}`);
}
