import type { Access } from "../access.ts";
import { brokenPatterns } from "./brokenPatterns.ts";
import { defaultDeny } from "./defaultDeny.ts";
import { type ExpiryOptions, expiryFindings } from "./expiry.ts";
import type { Finding } from "./finding.ts";
import { keyFilters } from "./keyFilters.ts";
import { patternUses } from "./patternUses.ts";
import { ruleFindings } from "./ruleFindings.ts";
import { tagsNowhere } from "./tagsNowhere.ts";
import { unanchoredPatterns } from "./unanchoredPatterns.ts";

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
