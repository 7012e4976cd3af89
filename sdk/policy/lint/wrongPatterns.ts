import { areDisjoint } from "../disjoint.ts";
import { mistakenFor, mistakenText } from "../mistaken.ts";
import { finderOf } from "./finder.ts";
import type { Finding } from "./finding.ts";
import type { PatternUse } from "./patternUses.ts";
import { quoted } from "./wording.ts";

/** What a pattern that does not compile does to its object. */
const BROKEN = {
  admit: () => "so the key admits nobody",
  allow: () => "so the rule allows nothing",
  deny: ({ subject }: PatternUse) => `so the rule denies every ${subject} that the rest of it matches`,
} as const;

/** What a pattern that matches nothing does to its object. */
const IMPOSSIBLE = {
  admit: "so the key never admits a login",
  allow: "so the rule never allows a login",
  deny: "so the rule never denies a login",
} as const;

const SUBJECTS = { login: "login name", address: "IP address", device: "device name" } as const;

/** At most one finding for a pattern: it does not compile, is in another notation, or matches no text that there can be. */
export function wrongPatterns(uses: readonly PatternUse[]): Finding[] {
  return uses.flatMap((use): Finding[] => {
    const { who, field, pattern, object, effect, subject } = use;
    const found = { severity: "error", object, field } as const;
    const what = `${who}: ${field} ${quoted(pattern)}`;
    if (finderOf(pattern) === undefined) {
      const message = `${what} is not a regular expression in RE2 syntax, ${BROKEN[effect](use)}.`;
      return [{ ...found, rule: "broken-pattern", message, suggestion: "Write the pattern anew." }];
    }
    const mistaken = mistakenFor(pattern, subject);
    if (mistaken) {
      const message = `${what} is ${mistaken.notation}, and the service takes it for a regular expression.`;
      return [{ ...found, rule: "mistaken-pattern", message, suggestion: mistakenText(mistaken) }];
    }
    if (!areDisjoint([pattern], subject)) return [];
    const message = `${what} matches no ${SUBJECTS[subject]}, ${IMPOSSIBLE[effect]}.`;
    return [{ ...found, rule: "never-matches", message, suggestion: "Correct the pattern." }];
  });
}

/** True for a pattern because of which its key or rule never matches. */
export const matchesNothing = ({ pattern, subject, effect }: PatternUse): boolean =>
  finderOf(pattern) === undefined ? effect !== "deny" : areDisjoint([pattern], subject);
