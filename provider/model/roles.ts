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
  /** The tokens with which a program gets the role, as a phrase. Undefined for users and keys. */
  readonly tokens?: string;
}

/** A role above observer that a change gives to a user or a program, or extends. */
export interface GainedRole {
  readonly role: Role;
  /** The user or program that has the role, such as `API key ci`. */
  readonly holder: string;
}

/** Returns true for a role above observer. Observers cannot change the policy. */
export const isAboveObserver = (role: Role | "service" | undefined): role is Role =>
  role !== undefined && role !== "service" && roleAtLeast(role, "operator");

/**
 * Returns the role above observer that a change gives. The change gives a role to a new holder, gives a higher role, or
 * extends the same role.
 * @param isWider true if the holder has the role for a longer time, or with other tokens
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

/** Returns the permissions of a holder as a sentence without its subject: `has the permissions of an operator`. */
export function permissionsText({ role, until, tokens }: HeldRole): string {
  const permissions = `has the permissions of ${/^[aeiou]/.test(role) ? "an" : "a"} ${role}`;
  const end = until === undefined ? "" : until === null ? " without expiry" : ` until ${until.slice(0, 10)}`;
  return `${permissions}${end}${tokens === undefined ? "" : ` for ${tokens}`}`;
}

/** Returns the role of an unmanaged holder as a sentence without its subject: `gives the role operator`. */
export const roleText = ({ role, tokens }: HeldRole): string =>
  `gives the role ${role}${tokens === undefined ? "" : ` to ${tokens}`}`;
