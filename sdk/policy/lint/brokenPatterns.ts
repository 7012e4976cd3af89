import { finderOf } from "./finder.ts";
import type { Finding } from "./finding.ts";
import type { PatternUse } from "./patternUses.ts";
import { quoted } from "./wording.ts";

const MEANS = {
  admit: () => "so the key admits nobody",
  allow: () => "so the rule allows nothing",
  deny: ({ subject }: PatternUse) => `so the rule denies every ${subject} that the rest of it matches`,
} as const;

/** Findings for patterns that do not compile. */
export function brokenPatterns(uses: readonly PatternUse[]): Finding[] {
  return uses
    .filter(({ pattern }) => finderOf(pattern) === undefined)
    .map((use) => ({
      rule: "broken-pattern",
      severity: "error",
      message: `${use.who}: ${use.field} ${quoted(use.pattern)} is not a regular expression in RE2 syntax, ${MEANS[use.effect](use)}.`,
      object: use.object,
      field: use.field,
      suggestion: "Write the pattern anew.",
    }));
}
