import { AsyncLocalStorage } from "node:async_hooks";
import type { PolicyTestBody } from "./types.ts";

export const MATCHERS = [
  "toAllow",
  "toRequireApproval",
  "onlyFrom",
  "toExpireWithin",
  "exactlyOneOwner",
  "everyKeyExpires",
  "toSatisfy",
  "toAllSatisfy",
] as const;

export type MatcherName = (typeof MATCHERS)[number];

/** A policy test, as declared in its file. */
export interface DeclaredTest {
  readonly name: string;
  readonly body: PolicyTestBody;
  /** Time limit of the test, in seconds. */
  readonly timeLimit: number;
  readonly stack: string;
}

export interface CalledMatcher {
  readonly matcher: MatcherName;
  readonly negated: boolean;
  /** The argument of `expect`. */
  readonly subject: unknown;
  readonly args: readonly unknown[];
  readonly stack: string;
}

/** Holds the function that registers each test that the policy file declares while the file is being loaded. */
export const loading: { declare: ((test: DeclaredTest) => void) | undefined } = { declare: undefined };

/** Holds the callback that evaluates the matchers which the running test calls. */
export const running = new AsyncLocalStorage<(called: CalledMatcher) => void>();

/** Returns the call stack, starting with the caller of a function. */
export function stackAbove(called: (...args: never[]) => unknown): string {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, called);
  return holder.stack ?? "";
}
