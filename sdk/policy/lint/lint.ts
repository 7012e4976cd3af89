import type { Access } from "../access.ts";
import { defaultDeny } from "./defaultDeny.ts";
import { expiryFindings, type LintOptions } from "./expiry.ts";
import type { Field, Finding, FindingObject } from "./finding.ts";
import { keyFilters } from "./keyFilters.ts";
import { patternUses } from "./patternUses.ts";
import { ruleFindings } from "./ruleFindings.ts";
import { tagsNowhere } from "./tagsNowhere.ts";
import { unanchoredPatterns } from "./unanchoredPatterns.ts";
import { objectId } from "./wording.ts";
import { matchesNothing, wrongPatterns } from "./wrongPatterns.ts";

/**
 * What somebody should look at in a policy; `lintRules` says what each kind of finding means. What rules and keys do is
 * judged by the logins and addresses of the access's domain. Inactive rules are left out.
 */
export function lint(access: Access, options: LintOptions = {}): Finding[] {
  const uses = patternUses(access);
  const wrong = wrongPatterns(uses);
  const places = new Set(wrong.map(({ object, field }) => placeOf(object, field)));
  const idle = new Set(uses.filter(matchesNothing).map(({ object }) => objectId(object)));
  return [
    ...wrong,
    ...unanchoredPatterns(
      access,
      uses.filter(({ object, field }) => !places.has(placeOf(object, field))),
    ),
    ...ruleFindings(access, idle),
    ...keyFilters(access, idle),
    ...tagsNowhere(access),
    ...defaultDeny(access),
    ...expiryFindings(options),
  ];
}

const placeOf = (object: FindingObject, field: Field | undefined) => `${objectId(object)} ${field}`;
