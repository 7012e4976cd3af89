import type { Access, AccessDomain, AccessPolicy } from "@gatehouse-access/sdk/policy";
import type { ApiKey, Namespace } from "../../service/listings.ts";

/** A member of the namespace, as the service lists it. */
export type PolicyMember = Namespace["members"][number];

/** An API key of the namespace, as the service lists it: without its secret. */
export type PolicyApiKey = ApiKey;

/** What a policy test is about: a namespace as it is, or as it will be after a change. */
export interface PolicySubjects {
  /** Who can reach what: for `expect(access)`. */
  readonly access: Access;
  /** The devices, public keys and firewall rules that decide it: for predicates of your own. */
  readonly policy: AccessPolicy;
  /** Reading it ends the test with a failure where the credential may not read the members. */
  readonly members: readonly PolicyMember[];
  /** Reading it ends the test with a failure where the credential may not read the API keys. */
  readonly apiKeys: readonly PolicyApiKey[];
  /** The login names and addresses that `access` is evaluated for; assertions add what they name. */
  readonly domain: AccessDomain;
}

/** What a test does; one that answers a promise ends with it. */
export type PolicyTestBody = (subjects: PolicySubjects) => void | Promise<void>;
