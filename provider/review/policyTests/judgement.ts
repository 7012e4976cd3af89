import { accessMatchers } from "./accessMatchers.ts";
import { listMatchers } from "./listMatchers.ts";
import type { LookedAt, PolicyCounterexample } from "./results.ts";
import type { MatcherName } from "./written/matchers.ts";
import type { CalledMatcher } from "./written/running.ts";

/** What a matcher found, whichever way it was meant. */
export interface Finding {
  /** Whether it is as the matcher says, without `not`. */
  readonly holds: boolean;
  /** Why it is so. */
  readonly message: string;
  readonly counterexamples?: readonly PolicyCounterexample[];
  readonly cases?: number;
  readonly lookedAt?: LookedAt;
  /** Why the assertion would be fulfilled whatever the policy says, if so. */
  readonly vacuous?: string | undefined;
}

/** A matcher at work: it is told of `not` because what is worth finding differs. */
export type Judge = (subject: unknown, args: readonly unknown[], negated: boolean) => Finding;

const judges: Record<MatcherName, Judge> = { ...accessMatchers, ...listMatchers };

/**
 * Judges a matcher.
 * @throws TypeError when the subject or the arguments are not for it
 */
export function judge({ matcher, subject, args, negated }: CalledMatcher): Finding {
  return judges[matcher](subject, args, negated);
}
