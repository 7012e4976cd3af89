import {
  type AccessDomain,
  type AccessPolicy,
  type DomainOptions,
  domainOf,
} from "@gatehouse-access/sdk/policy";
import type { Estate } from "./estate.ts";
import type { PlannedListings } from "./plannedListings.ts";
import type { PlannedEstate } from "./plannedPolicy.ts";
import type { PolicyTestFacts } from "./policyTests.ts";

/** Login names and addresses to evaluate a namespace for, as it is and as a plan will leave it. */
export function plannedDomain(
  { policy, seen }: Pick<Estate, "policy" | "seen">,
  after: AccessPolicy,
  { logins = [], addresses = [] }: DomainOptions = {},
): AccessDomain {
  return domainOf([policy, after], {
    logins: [...seen.logins, ...logins],
    addresses: [...seen.addresses, ...addresses],
  });
}

/** The facts of a namespace as a plan will leave it, for policy tests. */
export function plannedFacts(
  { unknown }: Pick<Estate, "unknown">,
  { policy }: Pick<PlannedEstate, "policy">,
  { members, apiKeys }: PlannedListings,
  domain: AccessDomain,
): PolicyTestFacts {
  return { policy, domain, unknown, members, apiKeys };
}
