import type { Access } from "../access.ts";
import type { DeviceFilter } from "../keyAdmits.ts";
import type { Finding, FindingObject } from "./finding.ts";
import { keyName, keyObject, listed, ruleName, ruleObject } from "./wording.ts";

/** Findings for filters that have a tag which no device has, beside tags that devices have. */
export function tagsNowhere({ policy, rules }: Access): Finding[] {
  const known = new Set(policy.devices.flatMap(({ tags }) => tags));
  const check = (who: string, object: FindingObject, { hostname, tags = [] }: DeviceFilter): Finding[] => {
    const missing = hostname ? [] : tags.filter((tag) => !known.has(tag));
    if (missing.length === 0 || missing.length === tags.length) return [];
    return [
      {
        rule: "tag-nowhere",
        severity: "warning",
        message: `${who}: filter.tags has ${listed(missing)}, which no device has.`,
        object,
        field: "filter.tags",
        suggestion: "Correct the tag, or take it out of the filter.",
        evidence: { tags: missing },
      },
    ];
  };
  return [
    ...policy.keys.flatMap((key) => check(keyName(key), keyObject(key), key.filter)),
    ...rules.flatMap((rule) => check(ruleName(rule), ruleObject(rule), rule.filter)),
  ];
}
