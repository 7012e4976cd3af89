import { hasPassed } from "../times.ts";

/** The fields of a member that determine whether the member's keys can be used. */
export interface AccessMember {
  /** The id of the user. */
  readonly id: string;
  /** The e-mail address of the user's account. */
  readonly email: string;
  /** False while the user has not accepted the invitation. */
  readonly isAccepted: boolean;
  /** The expiry time of the membership, in RFC 3339. Undefined if the membership does not expire. */
  readonly expiresAt?: string | undefined;
}

/**
 * Returns true if an object has expired at a given time. An object whose expiry time is invalid is treated as expired.
 */
export const hasExpired = ({ expiresAt }: { readonly expiresAt?: string | undefined }, at: Date): boolean =>
  expiresAt !== undefined && hasPassed(expiresAt, at);

/**
 * The reason why a public key cannot be used for any login. `type`: the service refuses keys of this type. `expired`:
 * the key has expired. `owner`: the owner is not a member, has not accepted the invitation, or has a membership that
 * has expired.
 */
export type KeyLapse = "type" | "expired" | "owner";

/** The fields of a public key that determine whether the key can be used at a given time. */
export interface KeyValidity {
  /**
   * The type of the key, such as `ssh-dss`, if the service refuses keys of this type. Undefined for accepted types.
   */
  readonly refusedType?: string | undefined;
  /** The time when the key expires, in RFC 3339. Undefined if it does not expire. */
  readonly expiresAt?: string | undefined;
  /** The id of the user to whom the key belongs. The key can be used only while the user is a member. */
  readonly owner?: string | undefined;
}

/** The membership of a key's owner. */
export type KeyOwner = Pick<AccessMember, "isAccepted" | "expiresAt">;

/**
 * Returns the reason why a public key cannot be used for any login at a given time; undefined if it can be used.
 * @param owner the membership of the key's owner; undefined if the owner is not a member
 */
export function keyLapse(key: KeyValidity, owner: KeyOwner | undefined, at: Date): KeyLapse | undefined {
  if (key.refusedType !== undefined) return "type";
  if (hasExpired(key, at)) return "expired";
  if (key.owner === undefined) return undefined;
  return owner?.isAccepted && !hasExpired(owner, at) ? undefined : "owner";
}

/** Returns the earlier of two times in RFC 3339. If only one time is defined, returns this time. */
export function earlier(left: string | undefined, right: string | undefined): string | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return Date.parse(left) <= Date.parse(right) ? left : right;
}

/**
 * Returns true if the expiry time of an access is later after a change than before. An undefined expiry time means that
 * the access does not expire.
 */
export const isLaterEnd = (before: string | undefined, after: string | undefined): boolean =>
  before !== undefined && (after === undefined || Date.parse(after) > Date.parse(before));

/** Returns the latest of several times in RFC 3339; undefined if there are no times. */
export const latest = (times: readonly string[]): string | undefined =>
  times.toSorted((left, right) => Date.parse(left) - Date.parse(right)).at(-1);
