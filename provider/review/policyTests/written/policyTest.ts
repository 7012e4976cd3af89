import type { Access, AccessDomain, AccessPolicy } from "@gatehouse-access/sdk/policy";
import type { ApiKey, Namespace } from "../../../resources/listings.ts";
import { loading, stackAbove } from "./running.ts";

/** Seconds that a test may take where it says nothing else. */
export const TIME_LIMIT = 10;

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

/** What a test may say about itself. */
export interface PolicyTestOptions {
  /** Seconds after which a test that waits for something has failed; default {@link TIME_LIMIT}. */
  readonly timeLimit?: number;
}

/**
 * Declares what must hold about access, in a file `*.policy.ts` beside Pulumi.yaml.
 * @example
 * policyTest("contractors stay out of production", ({ access }) => {
 *   expect(access).not.toAllow({ key: "contractor-*", device: { tag: "prod" } });
 * });
 * @throws Error outside of a policy file that `gatehouse` loads
 * @throws TypeError when the name is empty, the body no function, or the time limit not positive
 */
export function policyTest(name: string, body: PolicyTestBody, options: PolicyTestOptions = {}): void {
  const { timeLimit = TIME_LIMIT } = options;
  if (typeof name !== "string" || name.trim() === "") throw new TypeError("policyTest(): needs a name");
  if (typeof body !== "function") throw new TypeError(`policyTest("${name}"): needs a function to run`);
  if (!(timeLimit > 0)) {
    throw new TypeError(`policyTest("${name}"): timeLimit must be a positive number of seconds`);
  }
  if (!loading.declare) {
    throw new Error(
      `policyTest("${name}"): declare tests while their file is loaded by gatehouse, for example by: gatehouse test`,
    );
  }
  loading.declare({ name, body, timeLimit, stack: stackAbove(policyTest) });
}
