import { inspect } from "node:util";
import type { LookedAt, PolicyCounterexample } from "./results.ts";

/** What a matcher found out, whether or not it was called by `not`. */
export interface Judgement {
  /** Whether it is as the matcher says, without `not`. */
  readonly holds: boolean;
  /** Why it is so. */
  readonly message: string;
  readonly counterexamples?: readonly PolicyCounterexample[];
  readonly cases?: number;
  readonly lookedAt?: LookedAt;
  /** Why the assertion would hold whatever the policy says; undefined where it would not. */
  readonly vacuous?: string | undefined;
}

/**
 * A matcher at work. It is told of `not`, since that decides which examples are worth showing. May throw TypeError, where
 * the subject or the arguments are not for it.
 */
export type Judge = (subject: unknown, args: readonly unknown[], negated: boolean) => Judgement;

/**
 * What a predicate says.
 * @throws TypeError when it is neither true nor false: a promise, for one, would always count as true
 */
export function answerOf(predicate: string, answer: unknown): boolean {
  if (typeof answer === "boolean") return answer;
  throw new TypeError(`${predicate} must answer true or false, and at once; it answered ${inspect(answer)}`);
}
