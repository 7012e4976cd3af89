import type { Access } from "../access.ts";
import { anchored, isBeginning } from "./anchored.ts";
import { counterexampleOf } from "./counterexamples.ts";
import { isEverything, type Subject } from "./finder.ts";
import type { Finding } from "./finding.ts";
import type { PatternUse } from "./patternUses.ts";
import { quoted } from "./wording.ts";

const ADMITS = { admit: "admits", allow: "allows", deny: "denies" } as const;

/** Findings for patterns that are found in more texts than they spell. */
export function unanchoredPatterns(access: Access, uses: readonly PatternUse[]): Finding[] {
  const { logins, addresses } = access.domain;
  const nameOf = new Map(access.policy.devices.map(({ uid, name }) => [uid, name]));
  const names = new Set(nameOf.values());
  const known: Readonly<Record<Subject, (pattern: string) => readonly string[]>> = {
    login: () => logins,
    address: () => addresses,
    // The access keeps its answers, so that a pattern is tried only once on 10,000 names.
    device: (hostname) =>
      access.uidsOf(access.devicesOf({ hostname }, false)).flatMap((uid) => nameOf.get(uid) ?? []),
  };
  const examples = new Map<string, string | undefined>();
  return uses.flatMap((use): Finding[] => {
    const { object, who, effect, field, subject, pattern } = use;
    const name = `${subject} ${pattern}`;
    if (!examples.has(name)) {
      const all = isEverything(pattern, subject, false);
      examples.set(name, all ? undefined : counterexampleOf(pattern, subject, known[subject](pattern)));
    }
    const example = examples.get(name);
    if (example === undefined) return [];
    return [
      {
        rule: "unanchored-pattern",
        severity: effect === "deny" || isBeginning(pattern) ? "info" : "warning",
        message: `${who}: ${field} ${quoted(pattern)} is not anchored at both ends, it also ${ADMITS[effect]} the ${subject} ${quoted(example)}.`,
        object,
        field,
        suggestion: anchored(pattern, subject, (text) => names.has(text)),
        evidence: { counterexample: { [subject]: example } },
      },
    ];
  });
}
