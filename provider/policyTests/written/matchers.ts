import type { Access } from "@gatehouse-access/sdk/policy";
import type { AccessQuery } from "./query.ts";
import type { PolicyApiKey, PolicyMember } from "./subjects.ts";

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

/** All matchers there are. */
export const MATCHERS = [
  "toAllow",
  "onlyFrom",
  "exactlyOneOwner",
  "everyKeyExpires",
  "toSatisfy",
  "toAllSatisfy",
] as const;

/** One of {@link MATCHERS}. */
export type MatcherName = (typeof MATCHERS)[number];
