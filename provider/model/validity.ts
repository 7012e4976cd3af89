import { canonicalTime, DAY, hasPassed, isTime } from "@gatehouse-access/sdk/times";
import { z } from "zod";

/** The number of days for an object that never expires. */
export const NEVER = -1;

/** The schema of the number of days until an object expires, or {@link NEVER}. The service has the same maximum. */
export const daysSchema = z
  .int()
  .min(NEVER)
  .max(36_500)
  .refine((days) => days !== 0, "must be a number of days from 1, or -1 for an object that never expires");

/**
 * Converts a number of days to the form that requests use. The result is undefined for an object that never expires.
 */
export const daysOnWire = (days: number): number | undefined => (days === NEVER ? undefined : days);

/**
 * Returns the number of days between the creation and the expiry of an object. If `expiresAt` is null, the object never
 * expires.
 */
export const daysOf = (createdAt: string, expiresAt: string | null): number =>
  expiresAt === null ? NEVER : Math.max(1, Math.round((Date.parse(expiresAt) - Date.parse(createdAt)) / DAY));

/**
 * Converts a time to the form that states use. This form has milliseconds, but responses to creates contain times with
 * a higher precision. Null becomes an empty string.
 */
export const stateTime = (time: string | null): string => (time === null ? "" : canonicalTime(time));

/**
 * Returns true if an object with this expiry time has expired. An object whose expiry time is an empty string never
 * expires. A time that cannot be parsed, such as the placeholder of a secret, counts as not expired, so that reviews
 * report the object.
 */
export const hasEnded = (end: string, now: Date): boolean => isTime(end) && hasPassed(end, now);
