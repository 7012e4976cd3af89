import { InvalidError } from "../errors.ts";
import type { Services } from "../services.ts";
import { wireDate } from "./wireDate.ts";

/** The last time that both databases store and compare as text. The first time is 1970-01-01T00:00:00Z. */
export const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Returns the end of an access after an update. A past end is allowed, and ends the access at once.
 * @param field name of the request's field
 * @param requested undefined keeps the stored end; null removes the end
 * @throws InvalidError the year of the time is not from 1970 to 9999
 */
export function updatedEnd(
  field: string,
  requested: string | null | undefined,
  stored: Date | null,
): Date | null {
  if (requested === undefined || requested === null) return requested === null ? null : stored;
  const end = new Date(requested);
  if (end.getTime() >= 0 && end.getTime() <= LAST_TIME) return end;
  throw new InvalidError(`${field}: must be a time from 1970 to 9999`);
}

/**
 * Returns the end of the access of a new object.
 * @throws InvalidError the time is not in the future, or its year is after 9999
 */
export function newEnd(
  { accessTime }: Pick<Services, "accessTime">,
  field: string,
  requested: string | null | undefined,
): Date | null {
  const end = updatedEnd(field, requested, null);
  if (end !== null && end <= accessTime()) throw new InvalidError(`${field}: must be in the future`);
  return end;
}

/** Returns the end of an access for a response or revision, which omit an undefined field. */
export const presentEnd = (end: Date | string | null): string | undefined =>
  end === null ? undefined : wireDate(end);
