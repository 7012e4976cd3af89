import { Access, type EvaluatedLogins, type NamespacePolicy } from "@gatehouse-access/sdk/policy";
import { readTime, TIME_FORM } from "../access/queryTime.ts";
import type { TimedAccess } from "./written/types.ts";

/** Returns the access at a time, for a policy test. */
export function timedAccess(policy: NamespacePolicy, evaluated: EvaluatedLogins, time: Date): TimedAccess {
  return Object.assign(new Access(policy, evaluated, undefined, time), {
    at: (other: unknown) => timedAccess(policy, evaluated, timeOf(other)),
  });
}

/** Validates a time, since Node.js does not check the types of a policy file. */
function timeOf(given: unknown): Date {
  const time = given instanceof Date ? given : typeof given === "string" ? readTime(given) : undefined;
  if (time && !Number.isNaN(time.getTime())) return time;
  throw new TypeError(`access.at(): ${TIME_FORM}, or a valid Date, not ${String(given)}`);
}

const DURATION = /^([1-9][0-9]{0,5})([mhd])$/;
const UNITS_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns a duration in milliseconds, such as `30m`, `24h` or `14d`. @throws TypeError for another value */
export function durationOf(matcher: string, given: unknown): number {
  const [, count, unit = ""] = (typeof given === "string" && DURATION.exec(given)) || [];
  const unitMs = UNITS_MS[unit];
  if (unitMs !== undefined) return Number(count) * unitMs;
  throw new TypeError(
    `${matcher}(): takes a duration in minutes, hours or days, such as "30m", "24h" or "14d"`,
  );
}
