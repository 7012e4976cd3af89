import { isDeepStrictEqual } from "node:util";
import { type AccessKey, expiryOf } from "@gatehouse-access/sdk/policy";
import { endOf, hasMembershipEnded, type Workload } from "../estate/namespaceState.ts";
import { type ApiKey, apiKeyIdentity } from "../service/listings.ts";
import type { Member } from "../service/newerListings.ts";
import { byTexts } from "../words.ts";
import type { AcceptedTokens, ApiKeyChange, MemberChange, WorkloadChange } from "./report/review.ts";

type Roled = Pick<Member, "id" | "email" | "role" | "accessExpiresAt">;

/** Members who are added, removed, or get another role or end. `keys` are the public keys after the change. */
export function memberChanges(
  before: readonly Roled[],
  after: readonly Roled[],
  keys: readonly AccessKey[] = [],
): MemberChange[] {
  const was = new Map(before.map((member) => [member.email, member]));
  const is = new Map(after.map((member) => [member.email, member]));
  const now = new Date();
  const hasEnded = (member: Roled) => hasMembershipEnded(member, now);
  const changes = [...new Set([...was.keys(), ...is.keys()])].flatMap((email): MemberChange[] => {
    const member = is.get(email);
    const present = was.get(email);
    // A membership that has ended gives no role.
    const old = present && hasEnded(present) ? undefined : present;
    if (!old && (!member || hasEnded(member))) return [];
    const [from, to] = [old?.role, member?.role];
    const [untilBefore = null, until = null] = [old, member].map(
      (one) => endOf(one?.accessExpiresAt).expiresAt,
    );
    const isEndChanged = member !== undefined && until !== untilBefore;
    if (from === to && !isEndChanged) return [];
    const change = from === undefined ? "added" : to === undefined ? "removed" : from === to ? "end" : "role";
    const isEnded = !member || hasEnded(member);
    const owned = keys.filter(({ owner }) => owner !== undefined && [old?.id, email].includes(owner));
    return [
      {
        change,
        email,
        ...(from && { from }),
        ...(to && { to }),
        ...(isEndChanged && { until, untilBefore }),
        ...(isEnded && owned.length > 0 && { refusedKeys: owned.map(({ name }) => name) }),
      },
    ];
  });
  return changes.sort(byTexts(({ email }) => email));
}

/** Returns the trusted workloads that are added, removed, or get another role or other conditions, by name. */
export function workloadChanges(before: readonly Workload[], after: readonly Workload[]): WorkloadChange[] {
  const was = new Map(before.map((workload) => [workload.id, workload]));
  const is = new Map(after.map((workload) => [workload.id, workload]));
  const changes = [...new Map([...was, ...is]).values()].flatMap(({ id, name }): WorkloadChange[] => {
    const [old, now] = [was.get(id), is.get(id)];
    const [acceptedBefore, accepts] = [old && tokensOf(old), now && tokensOf(now)];
    const isSame = isDeepStrictEqual(acceptedBefore, accepts);
    if (old?.role === now?.role && isSame) return [];
    const change = !old ? "added" : !now ? "removed" : "altered";
    return [
      {
        change,
        name,
        ...(old && { from: old.role }),
        ...(now && { to: now.role, accepts }),
        ...(now && acceptedBefore && !isSame && { acceptedBefore }),
      },
    ];
  });
  return changes.sort(byTexts(({ name }) => name));
}

const tokensOf = ({ issuer, audience, claims, maxSessionMinutes, singleUse }: Workload): AcceptedTokens => ({
  issuer,
  audience,
  claims,
  maxSessionMinutes,
  singleUse,
});

type Keyed = Pick<ApiKey, "name" | "role" | "expiresIn" | "createdAt" | "createdBy">;

/**
 * Returns the API keys that are added, removed, replaced, or get another role, by name. A key that another key of the
 * same name replaces counts as replaced, even if it keeps working for an overlap.
 */
export function apiKeyChanges(before: readonly Keyed[], after: readonly Keyed[]): ApiKeyChange[] {
  const now = new Date();
  // A key that has expired gives no role.
  const lasts = ({ expiresIn }: Keyed) =>
    (expiryOf(expiresIn)?.getTime() ?? Number.POSITIVE_INFINITY) > now.getTime();
  const [olds, keys] = [before.filter(lasts), after.filter(lasts)];
  const was = new Map(olds.map((key) => [apiKeyIdentity(key), key]));
  const is = new Map(keys.filter(isLive).map((key) => [apiKeyIdentity(key), key]));
  const named = new Map(olds.map((key) => [key.name, key]));
  const replaced = new Set<Keyed>();
  const changes = keys.flatMap((key): ApiKeyChange[] => {
    const { name, role } = key;
    const same = isLive(key) ? was.get(apiKeyIdentity(key)) : undefined;
    if (same) return same.role === role ? [] : [{ change: "role", name, from: same.role, to: role }];
    const namesake = named.get(name);
    const kept = namesake && is.get(apiKeyIdentity(namesake));
    // A key that keeps working under another name, beside a new key with its name, is not replaced.
    const isReplaced = kept === undefined || [name, `${name} (replaced)`].includes(kept.name);
    const old = isReplaced ? namesake : undefined;
    // In a comparison of two plans, both plans create the key.
    const isSame = old !== undefined && !isLive(old) && old.role === role && endIn(old) === endIn(key);
    if (old) replaced.add(old);
    if (isSame) return [];
    const until = endIn(key);
    if (!old) return [{ change: "added", name, to: role, until }];
    const isLonger = validityOf(key) > validityOf(old) + DAY_MS;
    const ends = { until, untilBefore: endIn(old), ...(isLonger && { isLonger }) };
    return [{ change: "replaced", name, from: old.role, to: role, ...ends }];
  });
  const removed = olds.flatMap((key): ApiKeyChange[] => {
    if (replaced.has(key) || is.has(apiKeyIdentity(key))) return [];
    return [{ change: "removed", name: key.name, from: key.role }];
  });
  return [...changes, ...removed].sort(byTexts(({ name }) => name));
}

/** True for a key that exists on the service: a plan does not know the creator of a new key. */
const isLive = ({ createdBy }: Keyed): boolean => createdBy !== "";

const DAY_MS = 86_400_000;

/** Returns the time from the creation of a key to its end, in milliseconds. */
const validityOf = ({ createdAt, expiresIn }: Keyed): number =>
  (expiryOf(expiresIn)?.getTime() ?? Number.POSITIVE_INFINITY) - Date.parse(createdAt);

/** Returns the end of a key, in RFC 3339; null if it does not end. */
const endIn = ({ expiresIn }: Keyed): string | null => expiryOf(expiresIn)?.toISOString() ?? null;
