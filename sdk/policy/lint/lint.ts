import type { Access } from "../access.ts";
import { brokenPatterns } from "./brokenPatterns.ts";
import { defaultDeny } from "./defaultDeny.ts";
import { expiryFindings, type LintOptions } from "./expiry.ts";
import type { Finding } from "./finding.ts";
import { keyFilters } from "./keyFilters.ts";
import { patternUses } from "./patternUses.ts";
import { ruleFindings } from "./ruleFindings.ts";
import { tagsNowhere } from "./tagsNowhere.ts";
import { unanchoredPatterns } from "./unanchoredPatterns.ts";

/**
 * What somebody should look at in a policy; `lintRules` says what each kind of finding means. What rules and keys do is
 * judged by the logins and addresses of the access's domain. Inactive rules are left out.
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
