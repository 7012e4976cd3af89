import type {
  Access,
  AccessDevice,
  AccessDomain,
  AccessKey,
  AccessPolicy,
  AccessRule,
} from "@gatehouse-access/sdk/policy";
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

/** One login that is allowed. */
export interface Decision {
  readonly key: AccessKey;
  readonly login: string;
  /** The client's address. */
  readonly address: string;
  readonly device: AccessDevice;
  /** The rule that allows it; null where none matches. */
  readonly rule: AccessRule | null;
}

/** Which devices; each field that is given must fit. */
export interface DeviceQuery {
  /** Name; `*` stands for any text, `?` for one character. */
  readonly name?: string;
  readonly tag?: string;
  readonly uid?: string;
}

/** Which logins an assertion is about; each field that is given must fit, and `{}` is about all of them. */
export interface AccessQuery {
  /** A public key's name, where `*` stands for any text and `?` for one character, or its fingerprint. */
  readonly key?: string;
  /** Login name; `*` stands for any text, `?` for one character. */
  readonly login?: string;
  readonly device?: DeviceQuery;
  /** Client addresses: one, or a network like `10.0.0.0/8`, or several of them. */
  readonly from?: string | readonly string[];
  /** A condition of your own, asked of logins that are allowed and fit otherwise. */
  readonly where?: (decision: Decision) => boolean;
}

/** Matchers, and the same ones saying the opposite. */
export type Expectation<Matchers> = Matchers & {
  /** The opposite: `expect(access).not.toAllow(…)`. */
  readonly not: Matchers;
};

/** What can be said of any value. */
export interface ValueMatchers<Value> {
  /**
   * The predicate says true. An error that it throws fails the test.
   * @param what the predicate in words, for the report
   * @example expect(members.length).toSatisfy((count) => count <= 20, "at most 20 members");
   */
  toSatisfy(predicate: (value: Value) => boolean, what?: string): void;
}

/** What can be said of lists. */
export interface ListMatchers<Item> extends ValueMatchers<readonly Item[]> {
  /**
   * The predicate says true of each element. The report shows the elements of which it does not.
   * @param what the predicate in words, for the report
   * @example expect(policy.keys).toAllSatisfy(({ username }) => username.startsWith("^"), "login patterns are anchored");
   */
  toAllSatisfy(predicate: (item: Item) => boolean, what?: string): void;
}

/** What can be said of `access`. */
export interface AccessMatchers extends ValueMatchers<Access> {
  /**
   * At least one login that fits the query is allowed; of `not`: none is.
   * @example expect(access).not.toAllow({ key: "contractor-*", device: { tag: "prod" } });
   * @example expect(access).toAllow({ key: "deploy", login: "deploy", device: { name: "web-*" } });
   */
  toAllow(query: AccessQuery): void;
  /**
   * No login that fits the query is allowed from addresses outside of the networks; without a query, none at all.
   * @param networks addresses, or networks like `10.0.0.0/8`
   * @example expect(access).onlyFrom("10.0.0.0/8", { device: { tag: "prod" } });
   * @example expect(access).onlyFrom(["10.0.0.0/8", "2001:db8::/32"]);
   */
  onlyFrom(networks: string | readonly string[], query?: Omit<AccessQuery, "from">): void;
}

/** What can be said of `members`. */
export interface MemberMatchers<Item> extends ListMatchers<Item> {
  /**
   * Exactly one of them is an owner.
   * @example expect(members).exactlyOneOwner();
   */
  exactlyOneOwner(): void;
}

/** What can be said of `apiKeys`. */
export interface ApiKeyMatchers<Item> extends ListMatchers<Item> {
  /**
   * None of them lives for ever.
   * @param limit the most days that one may live, from its creation on
   * @example expect(apiKeys).everyKeyExpires({ withinDays: 90 });
   */
  everyKeyExpires(limit?: { readonly withinDays: number }): void;
}

/** A member, as far as the matchers look at it. */
export type MemberFacts = Pick<PolicyMember, "email" | "role">;
/** An API key, as far as the matchers look at it. */
export type ApiKeyFacts = Pick<PolicyApiKey, "name" | "expiresIn" | "createdAt">;
