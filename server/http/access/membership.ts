import { type AccessMember, hasExpired } from "@gatehouse-access/sdk/policy";
import type { Member } from "../../db/generated/sqlite/client.ts";
import { type Sql, sql } from "../../db/sql/sql.ts";

/** The columns of a membership that determine whether the membership gives access. */
export type MembershipState = Pick<Member, "status" | "accessExpiresAt">;

/** Converts a membership to the form that an access policy evaluates. */
export const policyMember = (row: MembershipState): Pick<AccessMember, "isAccepted" | "expiresAt"> => ({
  isAccepted: row.status === "accepted",
  expiresAt: row.accessExpiresAt?.toISOString(),
});

/** Returns true if a membership has expired. Also applies to the membership that a pending invitation offers. */
export const hasMembershipEnded = (row: MembershipState, at: Date): boolean =>
  hasExpired(policyMember(row), at);

/** Returns true if a user is a member: the user has accepted the invitation, and the membership has not expired. */
export const isMember = (row: MembershipState, at: Date): boolean =>
  row.status === "accepted" && !hasMembershipEnded(row, at);

/**
 * Returns the SQL condition for accepted and pending memberships that have not expired. Every query of members with
 * access uses this condition, because a user whose membership has expired has the same access as a user who is not a
 * member.
 */
export const membershipLasts = (at: Date): Sql =>
  sql`("Member"."accessExpiresAt" IS NULL OR "Member"."accessExpiresAt" > ${at})`;
