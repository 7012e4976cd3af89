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

/** The entry in a test's list of namespaces that matches all namespaces that the run evaluates. */
export const ALL_NAMESPACES = "*";

/** A policy test, as declared in its file. */
export interface DeclaredTest {
  readonly name: string;
  readonly body: PolicyTestBody;
  /** Time limit of the test, in seconds. */
  readonly timeLimit: number;
  /** Names or ids of the namespaces that the test checks, or `*`; undefined for the main namespace. */
  readonly namespaces: readonly string[] | undefined;
  readonly stack: string;
}

/** A declaration that a namespace is untested, as written in its file. */
export interface DeclaredUntested {
  /** Name or id of the namespace. */
  readonly namespace: string;
  readonly reason: string;
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

/** The functions that register the declarations of a policy file. */
export interface Declarations {
  readonly declareTest: (test: DeclaredTest) => void;
  readonly declareUntested: (untested: DeclaredUntested) => void;
}

/** Holds the functions that register the declarations of a policy file while the file is being loaded. */
export const loading: { file: Declarations | undefined } = { file: undefined };

/** Holds the callback that evaluates each matcher that the running test calls. */
export const running = new AsyncLocalStorage<(called: CalledMatcher) => void>();

/** Returns the call stack, starting with the caller of a function. */
export function stackAbove(called: (...args: never[]) => unknown): string {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, called);
  return holder.stack ?? "";
}
