import { hasPassed } from "../times.ts";

/** A member of a namespace, as far as the access by the member's keys depends on the membership. */
export interface AccessMember {
  /** The id of the user. */
  readonly id: string;
  /** The e-mail address of the user's account. */
  readonly email: string;
  /** False while the user has not accepted the invitation. */
  readonly isAccepted: boolean;
  /** The time when the membership ends, in RFC 3339. Undefined if it does not end. */
  readonly expiresAt?: string | undefined;
}

/**
 * Returns true if an object with an optional end gives no access at a time. An object whose end cannot be read gives no
 * access.
 */
export const hasExpired = ({ expiresAt }: { readonly expiresAt?: string | undefined }, at: Date): boolean =>
  expiresAt !== undefined && hasPassed(expiresAt, at);

/**
 * The reason why a public key admits no login: `type` if the service refuses keys of this type, `expired` if its end has
 * passed, `owner` if its owner is not a member, has not accepted the invitation, or is a member whose membership has
 * ended.
 */
export type KeyLapse = "type" | "expired" | "owner";

/** The fields of a public key that decide whether it admits logins at a time. */
export interface KeyValidity {
  /**
   * The type of the key, such as `ssh-dss`, if the service admits no login with keys of this type. Undefined for keys of
   * other types.
   */
  readonly refusedType?: string | undefined;
  /** The time when the key expires, in RFC 3339. Undefined if it does not expire. */
  readonly expiresAt?: string | undefined;
  /** The id of the user to whom the key belongs. The key admits logins only while the user is a member. */
  readonly owner?: string | undefined;
}

/** The membership of a key's owner. */
export type KeyOwner = Pick<AccessMember, "isAccepted" | "expiresAt">;

/**
 * Returns the reason why a public key admits no login at a time; undefined if it may admit logins.
 * @param owner the membership of the key's owner; undefined if the owner is not a member
 */
export function keyLapse(key: KeyValidity, owner: KeyOwner | undefined, at: Date): KeyLapse | undefined {
  if (key.refusedType !== undefined) return "type";
  if (hasExpired(key, at)) return "expired";
  if (key.owner === undefined) return undefined;
  return owner?.isAccepted && !hasExpired(owner, at) ? undefined : "owner";
}

/** Returns the earlier of two optional times in RFC 3339. */
export function earlier(left: string | undefined, right: string | undefined): string | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return Date.parse(left) <= Date.parse(right) ? left : right;
}

/** True if access lasts longer than before. Undefined ends: the access does not end. */
export const isLaterEnd = (before: string | undefined, after: string | undefined): boolean =>
  before !== undefined && (after === undefined || Date.parse(after) > Date.parse(before));

/** Returns the latest of several times in RFC 3339; undefined without a time. */
export const latest = (times: readonly string[]): string | undefined =>
  times.toSorted((left, right) => Date.parse(left) - Date.parse(right)).at(-1);
