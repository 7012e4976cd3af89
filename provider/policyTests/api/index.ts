import type { Access } from "@gatehouse-access/sdk/policy";
import { ALL_NAMESPACES, loading, MATCHERS, type MatcherName, running, stackAbove } from "./running.ts";
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
   * Time limit of the test in seconds. A test that takes longer fails.
   * @default {@link TIME_LIMIT}
   */
  readonly timeLimit?: number;
  /**
   * The namespaces that the test checks, by name or id. The test runs once for each of these namespaces, even if the
   * plan does not contain the namespace. `*` matches all namespaces that the run evaluates. An id stays valid if the
   * namespace is renamed. If a namespace does not exist, or if the credential cannot read it, it is reported as not
   * evaluated.
   * @default the main namespace: `GATEHOUSE_TENANT`, or the only namespace of the credential
   */
  readonly namespaces?: readonly string[];
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
 * @example
 * policyTest("no root login", ({ access }) => {
 *   expect(access).not.toAllow({ login: "root" });
 * }, { namespaces: ["prod", "staging"] });
 * @throws TypeError if the name is empty, the body is not a function, the time limit is not positive, or the list of
 * namespaces is empty
 */
export function policyTest(name: string, body: PolicyTestBody, options: PolicyTestOptions = {}): void {
  const { timeLimit = TIME_LIMIT, namespaces } = options;
  if (typeof name !== "string" || name.trim() === "") throw new TypeError("policyTest(): needs a name");
  if (typeof body !== "function") throw new TypeError(`policyTest("${name}") needs a function to run`);
  if (!(timeLimit > 0)) {
    throw new TypeError(`policyTest("${name}"): timeLimit must be a positive number of seconds`);
  }
  // An empty list usually comes from a variable that is not set. A test with an empty list would check nothing.
  if (namespaces !== undefined && !(Array.isArray(namespaces) && namespaces.length > 0)) {
    throw new TypeError(`policyTest("${name}"): namespaces must be a list of at least one name or id`);
  }
  if (namespaces?.some((namespace) => !isText(namespace))) {
    throw new TypeError(`policyTest("${name}"): each of the namespaces must be a name or an id`);
  }
  if (!loading.file) throw notLoaded(`policyTest("${name}")`);
  loading.file.declareTest({
    name,
    body,
    timeLimit,
    stack: stackAbove(policyTest),
    namespaces: namespaces && [...namespaces],
  });
}

/**
 * Declares in a policy file that no policy test checks a namespace. Without this declaration, a changed namespace
 * without a policy test is reported as not evaluated, which is a blocking finding. Reports list the untested namespace
 * with the reason. If a policy test checks the namespace, the test runs despite the declaration.
 * @param namespace name or id of the namespace. An id stays valid if the namespace is renamed
 * @param reason why the namespace needs no test, for reviewers
 * @example untested("sandbox", "experiments without production data");
 * @throws Error outside of a policy file that `gatehouse` loads
 * @throws TypeError if the namespace or the reason is empty, or the namespace is `*`
 */
export function untested(namespace: string, reason: string): void {
  if (!isText(namespace)) throw new TypeError("untested() needs the name or id of a namespace");
  if (namespace === ALL_NAMESPACES) {
    throw new TypeError(`untested("${ALL_NAMESPACES}"): declare each untested namespace by its name or id`);
  }
  if (!isText(reason)) throw new TypeError(`untested("${namespace}") needs a reason`);
  if (!loading.file) throw notLoaded(`untested("${namespace}")`);
  loading.file.declareUntested({ namespace, reason: reason.trim(), stack: stackAbove(untested) });
}

const isText = (value: unknown): boolean => typeof value === "string" && value.trim() !== "";

const notLoaded = (call: string) =>
  new Error(`${call}: gatehouse did not load this file; run the tests with: gatehouse test`);

/**
 * Returns the matchers for a value. The property `not` contains the negated matchers. The type of the value determines
 * the matchers. A failed assertion fails the test, but the test continues, so that one run reports all failures. An
 * assertion with invalid arguments also fails the test, with or without `.not`.
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
    if (!judge)
      throw new Error(`expect(…).${matcher}() was called outside a policy test. Call it inside policyTest()`);
    judge({ matcher, negated, subject, args, stack: stackAbove(called) });
  };
}
