import { z } from "zod";

const DAY = 86_400_000;

/** The number of days of an object that never expires. */
export const NEVER = -1;

/** The number of days until an object expires, or {@link NEVER}. The maximum is the one of the service. */
export const daysSchema = z
  .int()
  .min(NEVER)
  .max(36_500)
  .refine((days) => days !== 0, "must be a number of days from 1, or -1 for an object that never expires");

/** Returns the days in the form of requests, in which undefined is an object that never expires. */
export const daysOnWire = (days: number): number | undefined => (days === NEVER ? undefined : days);

/** Returns the number of days between the creation and the expiry of an object; null is an object that never expires. */
export const daysOf = (createdAt: string, expiresAt: string | null): number =>
  expiresAt === null ? NEVER : Math.max(1, Math.round((Date.parse(expiresAt) - Date.parse(createdAt)) / DAY));

/** Returns a time in the form of states, in milliseconds; empty for null. The response to a create has a finer time. */
export const timeText = (time: string | null): string => (time === null ? "" : new Date(time).toISOString());

/** Returns true if a time in the form of states has passed. The empty time never passes. */
export const hasPassed = (time: string, now: Date): boolean => Date.parse(time) <= now.getTime();
