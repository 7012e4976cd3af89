import { type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";

/** A role in a namespace that an object gives to a user or a program. */
export interface HeldRole {
  /** The role. Servers of version 0.27 or later also have the role `service`. */
  readonly role: Role | "service";
  /**
   * The time at which the role expires, in RFC 3339. Null if the role does not expire. Undefined if reports do not show
   * the expiry time.
   */
  readonly until?: string | null;
  /**
   * The OIDC tokens with which a program can get the role, as a phrase. Undefined if the holder needs no such token.
   */
  readonly tokens?: string;
}

/**
 * A role above observer that a user or program gains through a change: the holder gets the role, or keeps it under
 * wider conditions.
 */
export interface GainedRole {
  readonly role: Role;
  /** The user or program that has the role, such as `API key ci`. */
  readonly holder: string;
}

/** Returns true for a role above observer. Observers cannot change the policy. */
export const isAboveObserver = (role: Role | "service" | undefined): role is Role =>
  role !== undefined && role !== "service" && roleAtLeast(role, "operator");

/**
 * Returns the role that a holder gains through a change, if the role is above observer. A holder gains a role if the
 * new role is higher than the old role, or if the same role is extended.
 * @param isWider true if the change extends the role: the holder has it for a longer time, or can get it with other
 *   tokens
 */
export function gainedRole(
  { from, to }: { readonly from?: Role | "service"; readonly to?: Role | "service" },
  holder: string,
  isWider: boolean,
): GainedRole[] {
  if (!isAboveObserver(to)) return [];
  const isHigher = from === undefined || from === "service" || !roleAtLeast(from, to);
  return isHigher || isWider ? [{ role: to, holder }] : [];
}

/** Formats the permissions of a holder as a sentence without its subject: `has the permissions of an operator`. */
export function permissionsText({ role, until, tokens }: HeldRole): string {
  const permissions = `has the permissions of ${/^[aeiou]/.test(role) ? "an" : "a"} ${role}`;
  const end = until === undefined ? "" : until === null ? " without expiry" : ` until ${until.slice(0, 10)}`;
  return `${permissions}${end}${tokens === undefined ? "" : ` for ${tokens}`}`;
}

/** Formats the role of an unmanaged holder as a sentence without its subject: `gives the role operator`. */
export const roleText = ({ role, tokens }: HeldRole): string =>
  `gives the role ${role}${tokens === undefined ? "" : ` to ${tokens}`}`;
