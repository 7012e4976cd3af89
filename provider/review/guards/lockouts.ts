import { roleAtLeast } from "@gatehouse-access/sdk/contract";
import type { Access, AccessDevice } from "@gatehouse-access/sdk/policy";
import type { Member } from "../../estate/namespaceState.ts";
import { firstOf } from "../../words.ts";

/** Most devices that the message of a lock-out names. */
const NAMED_MAX = 5;

/** A member, as far as lock-outs depend on it. */
export type Seat = Pick<Member, "id" | "email" | "role" | "status">;

/** Devices that must stay reachable: those with a tag, or with a name. */
export interface ProtectedGroup {
  /** As the user wrote it. */
  readonly label: string;
  readonly has: (device: AccessDevice) => boolean;
}

/** Somebody or something that a change locks out. */
export interface Lockout {
  readonly code: "last-administrator" | "running-user" | "protected-devices";
  readonly message: string;
}

/** Reads a group as `--protect` names it: `tag:prod`, `name:web-1`, or a word that is a tag or a name. */
export function protectedGroup(label: string): ProtectedGroup {
  const [, kind, word = label] = /^(tag|name):(.+)$/s.exec(label) ?? [];
  return {
    label,
    has: ({ name, tags }) => (kind !== "name" && tags.includes(word)) || (kind !== "tag" && name === word),
  };
}

/** Members who can put things right again. One who has only been invited cannot yet. */
const administrators = (seats: readonly Seat[]): Seat[] =>
  seats.filter(({ role, status }) => status === "accepted" && roleAtLeast(role, "administrator"));

/**
 * The people whom a change of the members locks out of administering the namespace.
 * @param runningUser id of the user who carries the change out; undefined for an API key
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
  // An owner who runs the change can put it right.
  const isOwner = own(before)?.role === "owner";
  if (!isOwner && others(administrators(before)).length > 0 && others(left).length === 0) {
    lockouts.push({
      code: "last-administrator",
      message: "no administrator is left beside the owner, who does not run this",
    });
  }
  const [was, is] = [own(administrators(before)), own(left)];
  if (was && !is) {
    const seat = own(after);
    lockouts.push({
      code: "running-user",
      message: seat
        ? `the user who runs this, ${was.email}, becomes ${seat.role} and can undo nothing`
        : `the user who runs this, ${was.email}, is no member any more`,
    });
  }
  return lockouts;
}

/** Protected groups with devices that somebody reaches before a change, and nobody after it. */
export function deviceLockouts(before: Access, after: Access, groups: readonly ProtectedGroup[]): Lockout[] {
  const lost = groups.length === 0 ? [] : unreachable(before, after);
  return groups.flatMap((group) => {
    const devices = lost.filter(group.has);
    if (devices.length === 0) return [];
    const names = devices.map(({ name }) => name);
    return [
      {
        code: "protected-devices" as const,
        message: `nobody reaches ${firstOf(names, NAMED_MAX)} any more, which --protect ${group.label} names`,
      },
    ];
  });
}

/** Devices that some key reaches before and none after. Devices that are gone are not locked out. */
function unreachable(before: Access, after: Access): AccessDevice[] {
  const lost = new Set(after.uidsOf(before.reached().new_difference(after.reached())));
  return after.policy.devices.filter(({ uid }) => lost.has(uid));
}
