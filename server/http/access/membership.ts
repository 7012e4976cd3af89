import { type AccessMember, hasExpired } from "@gatehouse-access/sdk/policy";
import type { Member } from "../../db/generated/sqlite/client.ts";
import { type Sql, sql } from "../../db/sql/sql.ts";

/** The columns of a membership that decide whether it gives access. */
export type MembershipState = Pick<Member, "status" | "accessExpiresAt">;

/** Returns a membership as an access policy evaluates it. */
export const policyMember = (row: MembershipState): Pick<AccessMember, "isAccepted" | "expiresAt"> => ({
  isAccepted: row.status === "accepted",
  expiresAt: row.accessExpiresAt?.toISOString(),
});

/** Returns true if a membership, or the membership that an invitation offers, has ended. */
export const hasMembershipEnded = (row: MembershipState, at: Date): boolean =>
  hasExpired(policyMember(row), at);

/** Returns true if a user is a member: the user has accepted the invitation, and the membership has not ended. */
export const isMember = (row: MembershipState, at: Date): boolean =>
  row.status === "accepted" && !hasMembershipEnded(row, at);

/**
 * Returns the SQL condition for the memberships that have not ended, accepted and pending ones. Every query of members
 * with access uses this condition: a user whose membership has ended has the same access as a user who is not a member.
 */
export const membershipLasts = (at: Date): Sql =>
  sql`("Member"."accessExpiresAt" IS NULL OR "Member"."accessExpiresAt" > ${at})`;
