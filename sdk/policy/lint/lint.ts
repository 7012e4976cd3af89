import type { Access } from "../access.ts";
import type { AccessRule, DeviceFilter } from "../decisions.ts";
import { expiryFindings, type LintOptions } from "./expiry.ts";
import {
  type Field,
  type Finding,
  type FindingObject,
  fieldOf,
  filterText,
  keyName,
  keyObject,
  listed,
  objectId,
  ruleName,
  ruleObject,
} from "./finding.ts";
import { isEveryDevice, isEverything, matchesNothing, patternUses, wrongPatterns } from "./patterns.ts";
import { ruleFindings } from "./rules.ts";
import { unanchoredPatterns } from "./unanchored.ts";

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

/**
 * Findings for keys that are for no device, and for keys that are for every login on every device.
 * @param explained ids of the objects with a wrong pattern, whose finding explains why they match nothing
 */
function keyFilters(access: Access, explained: ReadonlySet<string>): Finding[] {
  const { keys, devices } = access.policy;
  return keys.flatMap((key): Finding[] => {
    const object = keyObject(key);
    if (isEverything(key.username, "login", false) && isEveryDevice(key.filter, false)) {
      return [
        {
          rule: "matches-everything",
          severity: "warning",
          message: `${keyName(key)} is for every login on every device.`,
          object,
          suggestion: "Name the logins with login(), and the devices by tags or with hostname().",
        },
      ];
    }
    const idle =
      devices.length > 0 && !explained.has(objectId(object)) && access.devicesOf(key.filter, false).isEmpty();
    if (!idle) return [];
    return [
      {
        rule: "never-matches",
        severity: "warning",
        message: `${keyName(key)} admits nobody: its ${filterText(key.filter)} is for no device.`,
        object,
        field: fieldOf(key.filter),
        suggestion: "Correct the filter, or remove the key.",
      },
    ];
  });
}

/** Findings for filters that have a tag which no device has, beside tags that devices have. */
function tagsNowhere({ policy, rules }: Access): Finding[] {
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

/** A finding where no rule denies what the others do not match. */
function defaultDeny({ policy, rules }: Access): Finding[] {
  if (policy.keys.length === 0 || rules.some(deniesEverything)) return [];
  const none = rules.length === 0;
  return [
    {
      rule: "no-default-deny",
      severity: none ? "info" : "warning",
      message: none
        ? "The policy has no active firewall rule, so every login that a key admits is allowed."
        : "No active rule of the policy denies every login from every address on every device, so what no rule matches is allowed.",
      object: { kind: "policy", id: "policy", name: "policy" },
      suggestion:
        'Add a rule of the lowest priority that denies username ".*" from sourceIp ".*" on hostname ".*".',
    },
  ];
}

// A pattern that does not compile matches everything in a rule that denies.
const deniesEverything = ({ action, username, sourceIp, filter }: AccessRule): boolean =>
  action === "deny" &&
  isEverything(username, "login", true) &&
  isEverything(sourceIp, "address", true) &&
  isEveryDevice(filter, true);
