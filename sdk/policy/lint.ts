import type { Access } from "./access.ts";
import { brokenPatterns } from "./lint/brokenPatterns.ts";
import { defaultDeny } from "./lint/defaultDeny.ts";
import { type ExpiryOptions, expiryFindings } from "./lint/expiry.ts";
import type { Finding } from "./lint/finding.ts";
import { keyFilters } from "./lint/keyFilters.ts";
import { patternUses } from "./lint/patternUses.ts";
import { ruleFindings } from "./lint/ruleFindings.ts";
import { tagsNowhere } from "./lint/tagsNowhere.ts";
import { unanchoredPatterns } from "./lint/unanchoredPatterns.ts";

/** What is linted beside the policy, and how. */
export type LintOptions = ExpiryOptions;

/**
 * What somebody should look at in a policy; `lintRules` says what each kind of finding means. What a rule or key does is
 * judged over the access's domain; inactive rules are left alone.
 */
export function lint(access: Access, options: LintOptions = {}): Finding[] {
  const uses = patternUses(access);
  return [
    ...brokenPatterns(uses),
    ...unanchoredPatterns(access, uses),
    ...ruleFindings(access),
    ...keyFilters(access),
    ...tagsNowhere(access),
    ...defaultDeny(access),
    ...expiryFindings(options),
  ];
}
