import type { Access } from "@gatehouse-access/sdk/policy";
import { loading, MATCHERS, type MatcherName, running, stackAbove } from "./running.ts";
import type {
  AccessMatchers,
  ApiKeyFacts,
  ApiKeyMatchers,
  Expectation,
  ListMatchers,
  MemberFacts,
  MemberMatchers,
  PolicyTestBody,
  ValueMatchers,
} from "./types.ts";

export type * from "./types.ts";

/** Default time limit of a test, in seconds. */
export const TIME_LIMIT = 10;

/** Options of a policy test. */
export interface PolicyTestOptions {
  /**
   * Time limit of the test in seconds. A test that has not ended after this time fails.
   * @default {@link TIME_LIMIT}
   */
  readonly timeLimit?: number;
}

/**
 * Declares a policy test in a file `*.policy.ts`. `gatehouse` runs the tests of a file in the order of their
 * declaration.
 * @param name name of the test in the report
 * @param body function that contains the assertions
 * @param options options of the test
 * @example
 * policyTest("contractors stay out of production", ({ access }) => {
 *   expect(access).not.toAllow({ key: "contractor-*", device: { tag: "prod" } });
 * });
 * @throws Error outside of a policy file that `gatehouse` loads
 * @throws TypeError if the name is empty, the body is not a function, or the time limit is not positive
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
      `policyTest("${name}"): gatehouse did not load this file; run the tests with: gatehouse test`,
    );
  }
  loading.declare({ name, body, timeLimit, stack: stackAbove(policyTest) });
}

/**
 * Returns the matchers for a value; `.not` has their negations. The type of the value determines the matchers. A failed
 * assertion fails the test but does not end the test, so that one run reports all failures. An assertion with invalid
 * arguments also fails the test, with or without `.not`.
 * @example expect(access).not.toAllow({ login: "root", from: "0.0.0.0/0" });
 * @throws Error if a matcher is called outside of a running policy test
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
    if (!judge) throw new Error(`expect(…).${matcher}(): can only be called in a running policyTest`);
    judge({ matcher, negated, subject, args, stack: stackAbove(called) });
  };
}
