import { isDeepStrictEqual } from "node:util";
import { roleAtLeast } from "@gatehouse-access/sdk/contract";
import type { Access, AccessDevice } from "@gatehouse-access/sdk/policy";
import type { Member } from "../../resources/member/listing.ts";
import type { Workload } from "../../resources/trustedWorkload.ts";
import { firstOf } from "../../words.ts";

const NAMED_MAX = 5;

/** The fields of a member that the lockout checks need. */
export type Seat = Pick<Member, "id" | "email" | "role" | "status">;

/** A group of devices, selected by tag or name, that must stay reachable. */
export interface ProtectedGroup {
  /** The argument of `--protect` that selects the group. */
  readonly label: string;
  readonly has: (device: AccessDevice) => boolean;
}

/** A user or a group of devices that a change locks out. */
export interface Lockout {
  readonly code:
    | "last-administrator"
    | "running-user"
    | "running-workload"
    | "protected-devices"
    | "no-access-policy";
  readonly message: string;
}

/** Parses an argument of `--protect`: `tag:prod`, `name:web-1`, or a word that matches a tag or a name. */
export function protectedGroup(label: string): ProtectedGroup {
  const [, kind, word = label] = /^(tag|name):(.+)$/s.exec(label) ?? [];
  return {
    label,
    has: ({ name, tags }) => (kind !== "name" && tags.includes(word)) || (kind !== "tag" && name === word),
  };
}

/** Returns the members who can revert a change: accepted members with the role `administrator` or a higher role. */
const administrators = (seats: readonly Seat[]): Seat[] =>
  seats.filter(({ role, status }) => status === "accepted" && roleAtLeast(role, "administrator"));

/**
 * Finds lockouts of administrators by a change to the members.
 * @param runningUser id of the user who applies the change; undefined for an API key
 */
export function memberLockouts(
  before: readonly Seat[],
  after: readonly Seat[],
  runningUser: string | undefined,
): Lockout[] {
  const lockouts: Lockout[] = [];
  const left = administrators(after);
  const others = (seats: readonly Seat[]) => seats.filter(({ role }) => role !== "owner");
  const own = (seats: readonly Seat[]) => seats.find(({ id }) => id === runningUser);
  // An owner who applies the change can also revert it. In this case, the loss of all other administrators is not a
  // lockout.
  const isOwner = own(before)?.role === "owner";
  if (!isOwner && others(administrators(before)).length > 0 && others(left).length === 0) {
    lockouts.push({
      code: "last-administrator",
      message: "no administrator remains except the owner, and the owner does not apply this change",
    });
  }
  const [was, is] = [own(administrators(before)), own(left)];
  if (was && !is) {
    const seat = own(after);
    lockouts.push({
      code: "running-user",
      message: seat
        ? `${was.email}, who applies this change, becomes ${seat.role} and cannot revert it`
        : `${was.email}, who applies this change, is no longer a member`,
    });
  }
  return lockouts;
}

/**
 * Finds the lockout of the workload that applies a change: the change deletes or demotes the workload, or its running
 * job may no longer match.
 * @param running id of the workload that applies the change; undefined for other credentials
 */
export function workloadLockouts(
  before: readonly Workload[],
  after: readonly Workload[],
  running: string | undefined,
): Lockout[] {
  const was = before.find(({ id, role }) => id === running && role === "administrator");
  const is = after.find(({ id }) => id === running);
  const rulesOf = (workload: Workload | undefined) =>
    workload && [workload.role, workload.issuer, workload.audience, workload.claims];
  if (!was || isDeepStrictEqual(rulesOf(was), rulesOf(is))) return [];
  const effect = is ? "gets another role, issuer, audience or other claims" : "is deleted";
  const message = `the trusted workload ${was.name}, which applies this change, ${effect}`;
  return [{ code: "running-workload", message }];
}

/**
 * Finds lockouts of protected groups: devices in these groups that are reachable before a change, but not after the
 * change.
 */
export function deviceLockouts(before: Access, after: Access, groups: readonly ProtectedGroup[]): Lockout[] {
  const lost = groups.length === 0 ? [] : unreachable(before, after);
  return groups.flatMap((group) => {
    const names = lost.filter(group.has).map(({ name }) => name);
    if (names.length === 0) return [];
    const [subject] = after.decider.nouns.subject;
    const message = `no ${subject} can reach ${firstOf(names, NAMED_MAX)} any longer (protected by --protect ${group.label})`;
    return [{ code: "protected-devices" as const, message }];
  });
}

/** Finds a change that deletes the last access policy, so that the namespace denies every login. */
export function policyLockouts(before: Access, after: Access): Lockout[] {
  const isLast = after.decider.deniesEverything && !before.reached().isEmpty();
  const message = "no access policy remains, so the namespace denies every login";
  return isLast ? [{ code: "no-access-policy", message }] : [];
}

/** Returns the devices that are reachable before a change, but not after the change. Omits removed devices. */
function unreachable(before: Access, after: Access): AccessDevice[] {
  const lost = new Set(after.uidsOf(before.reached().new_difference(after.reached())));
  return after.policy.devices.filter(({ uid }) => lost.has(uid));
}
