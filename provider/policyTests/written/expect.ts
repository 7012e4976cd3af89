import type { Access } from "@gatehouse-access/sdk/policy";
import {
  type AccessMatchers,
  type ApiKeyFacts,
  type ApiKeyMatchers,
  type Expectation,
  type ListMatchers,
  MATCHERS,
  type MatcherName,
  type MemberFacts,
  type MemberMatchers,
  type ValueMatchers,
} from "./matchers.ts";
import { running, stackAbove } from "./running.ts";

/**
 * Says what must hold; `.not` says the opposite. An assertion that fails, or makes no sense, fails its test but does not
 * end it, so that one run shows everything that is wrong.
 * @example expect(access).not.toAllow({ login: "root", from: "0.0.0.0/0" });
 * @throws Error when a matcher is called outside of a running policy test
 */
export function expect(access: Access): Expectation<AccessMatchers>;
export function expect<Item extends ApiKeyFacts>(apiKeys: readonly Item[]): Expectation<ApiKeyMatchers<Item>>;
export function expect<Item extends MemberFacts>(members: readonly Item[]): Expectation<MemberMatchers<Item>>;
export function expect<Item>(list: readonly Item[]): Expectation<ListMatchers<Item>>;
export function expect<Value>(value: Value): Expectation<ValueMatchers<Value>>;
export function expect(subject: unknown): unknown {
  return { ...matchers(subject, false), not: matchers(subject, true) };
}

function matchers(subject: unknown, negated: boolean): Record<string, (...args: unknown[]) => void> {
  return Object.fromEntries(MATCHERS.map((matcher) => [matcher, matcherOf(subject, matcher, negated)]));
}

function matcherOf(subject: unknown, matcher: MatcherName, negated: boolean): (...args: unknown[]) => void {
  return function called(...args) {
    const judge = running.getStore();
    if (!judge) throw new Error(`expect(…).${matcher}(): may be called in a running policyTest only`);
    judge({ matcher, negated, subject, args, stack: stackAbove(called) });
  };
}
