import {
  type AccessDomain,
  type AccessPolicy,
  type DomainOptions,
  domainOf,
} from "@gatehouse-access/sdk/policy";
import type { Estate } from "../estate.ts";
import type { NamespaceState } from "../planned/namespaceState.ts";
import { byText } from "../words/order.ts";
import type { PolicyTestFacts } from "./policyTests.ts";

/** Login names and addresses to evaluate a namespace for, at both ends of a change. */
export function domainOfEnds(
  policies: readonly AccessPolicy[],
  { seen }: Pick<Estate, "seen">,
  { logins = [], addresses = [] }: DomainOptions = {},
): AccessDomain {
  const domain = domainOf(policies, {
    logins: [...seen.logins, ...logins],
    addresses: [...seen.addresses, ...addresses],
  });
  return { logins: domain.logins.toSorted(byText), addresses: domain.addresses.toSorted(byText) };
}

/** What policy tests are told of one end. */
export const factsOf = (
  { unknown }: Pick<Estate, "unknown">,
  { policy, listed }: NamespaceState,
  domain: AccessDomain,
): PolicyTestFacts => ({ policy, domain, unknown, ...listed });
