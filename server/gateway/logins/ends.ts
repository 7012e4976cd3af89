import type { activeRules } from "../../features/firewall/evaluate.ts";
import type { OwnedKey } from "../../features/publicKeys/publicKey.ts";

type ActiveRules = Awaited<ReturnType<typeof activeRules>>;

/** Returns the next end of a rule after a time, in milliseconds since 1970; Infinity without such an end. */
export const nextRuleEnd = (rules: ActiveRules, at: Date): number =>
  nextEnd(
    rules.map(({ expiresAt }) => expiresAt),
    at,
  );

/** Returns the next end of a key or of its owner's membership; see {@link nextEnd}. */
export const keyEnd = (key: OwnedKey | null | undefined, at: Date): number =>
  nextEnd([key?.expiresAt, key?.owner?.accessExpiresAt], at);

/** Returns the earliest end after a time, in milliseconds since 1970; Infinity without such an end. */
export function nextEnd(ends: readonly (Date | string | null | undefined)[], at: Date): number {
  const times = ends.map((end) => (end ? new Date(end).getTime() : Infinity));
  return times.reduce((next, time) => (time > at.getTime() && time < next ? time : next), Infinity);
}
