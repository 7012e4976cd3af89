import { AsyncLocalStorage } from "node:async_hooks";
import type { MatcherName } from "./matchers.ts";
import type { PolicyTestBody } from "./policyTest.ts";

/** A test as its file declares it. */
export interface DeclaredTest {
  readonly name: string;
  readonly body: PolicyTestBody;
  /** Seconds. */
  readonly timeLimit: number;
  /** Of the declaration. */
  readonly stack: string;
}

/** A matcher that was called. */
export interface CalledMatcher {
  readonly matcher: MatcherName;
  readonly negated: boolean;
  readonly subject: unknown;
  readonly args: readonly unknown[];
  /** Of the call. */
  readonly stack: string;
}

/** What takes the declarations of the file that is being loaded; undefined while none is. */
export const loading: { declare: ((test: DeclaredTest) => void) | undefined } = { declare: undefined };

/** What judges the matchers that the running test calls. */
export const running = new AsyncLocalStorage<(called: CalledMatcher) => void>();

/** The stack of whoever called `called`. */
export function stackAbove(called: (...args: never[]) => unknown): string {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, called);
  return holder.stack ?? "";
}
