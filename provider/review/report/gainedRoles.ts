import { type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { isLaterEnd } from "@gatehouse-access/sdk/policy";
import { byTexts } from "../../words.ts";
import type { NamespaceReview } from "./review.ts";

/** A role above observer that a change gives to a user or a program, or makes wider. */
export interface GainedRole {
  readonly role: Role;
  /** The user or program with the role, as in `API key ci`. */
  readonly holder: string;
}

/** The changes of a namespace that may give roles. */
type RoleChanges = Pick<NamespaceReview, "members" | "workloads" | "apiKeys">;

/**
 * Returns the roles above observer that changes give: a new holder, a higher role, a later end, or other accepted tokens.
 * The highest role comes first.
 */
export function gainedRoles({ members, workloads, apiKeys }: RoleChanges): GainedRole[] {
  const gained = [
    ...members.map((change) => ({
      from: change.from,
      to: change.to,
      holder: `member ${change.email}`,
      // Without an end in the change, the end stays.
      isWider:
        change.until !== undefined && isLaterEnd(change.untilBefore ?? undefined, change.until ?? undefined),
    })),
    ...apiKeys.map((change) => ({
      from: change.from,
      to: change.to,
      holder: `API key ${change.name}`,
      isWider: change.isLonger === true,
    })),
    ...workloads.map((change) => ({
      from: change.from,
      to: change.to,
      holder: `workload ${change.name}`,
      isWider: change.acceptedBefore !== undefined,
    })),
  ].flatMap(({ from, to, holder, isWider }): GainedRole[] => {
    if (to === undefined || to === "service" || !roleAtLeast(to, "operator")) return [];
    const isHigher = from === undefined || from === "service" || !roleAtLeast(from, to);
    return isHigher || isWider ? [{ role: to, holder }] : [];
  });
  return gained.sort(
    byTexts<GainedRole>(
      ({ role }) => String(ORDER.indexOf(role)),
      ({ holder }) => holder,
    ),
  );
}

const ORDER: readonly Role[] = ["owner", "administrator", "operator", "observer"];
