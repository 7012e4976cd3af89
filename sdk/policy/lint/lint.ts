import { DAY, hasPassed } from "../../times.ts";
import { isPrincipal } from "../access.ts";
import type { Access } from "../decider.ts";
import { type AccessRule, isInForce } from "../decisions.ts";
import { isSubject } from "../identity.ts";
import {
  type Field,
  type Finding,
  type FindingObject,
  fieldOf,
  filterText,
  findingObject,
  keyName,
  keyObject,
  listed,
  objectId,
  objectName,
  policyName,
  policyObject,
  quoted,
  ruleName,
  ruleObject,
} from "./finding.ts";
import {
  isEveryDevice,
  isEverything,
  matchesNothing,
  patternUses,
  unanchoredPatterns,
  wrongPatterns,
} from "./patterns.ts";
import { ruleFindings } from "./rules.ts";
import { type LintedWorkload, workloadFindings } from "./workloads.ts";

/**
 * Finds problems in a policy. `lintRules` describes each kind of finding. The effects of rules and keys are evaluated
 * for the login names and addresses in `access.evaluated`. Inactive rules, expired rules and expired keys are skipped.
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
    ...policyFindings(access),
    ...ruleFindings(access, idle),
    ...keyFilters(access, idle),
    ...tagsNowhere(access),
    ...defaultDeny(access),
    ...endFindings(access),
    ...workloadFindings(options.trustedWorkloads ?? []),
    ...expiryFindings(options),
  ];
}

/** Returns findings for access policies that apply to no login, or to every login of every member. */
function policyFindings(access: Access): Finding[] {
  return access.decider.policies.flatMap((policy): Finding[] => {
    const { subject, filter, logins, sourceIps, action } = policy;
    const found = { severity: "warning", object: policyObject(policy) } as const;
    const name = policyName(policy);
    if (!access.subjects.some((one) => isPrincipal(one) && isSubject(policy, one))) {
      const missing = {
        user: `user or service account has the id ${quoted(subject.value)}`,
        role: `member has the role ${quoted(subject.value)}`,
        "all-members": "user is a member",
      };
      const message = `${name} never applies: no ${missing[subject.type]}.`;
      const suggestion = "Correct the subject, or remove the policy.";
      return [{ ...found, rule: "never-matches", message, field: "subject", suggestion }];
    }
    if (access.policy.devices.length > 0 && access.devicesOf(filter, action === "deny").isEmpty()) {
      const message = `${name} never applies: its ${filterText(filter)} matches no device.`;
      const suggestion = "Correct the filter, or remove the policy.";
      return [{ ...found, rule: "never-matches", message, field: fieldOf(filter), suggestion }];
    }
    const isOpen =
      action === "allow" && subject.type === "all-members" && logins.includes("*") && sourceIps.length === 0;
    if (!isOpen || !isEveryDevice(filter, false)) return [];
    const message = `${name} allows every login of every member on every device.`;
    const suggestion = "Restrict the subject, the logins or the devices.";
    return [{ ...found, rule: "matches-everything", message, suggestion }];
  });
}

const placeOf = (object: FindingObject, field: Field | undefined) => `${objectId(object)} ${field}`;

/**
 * Returns findings for the filters of public keys.
 * @param explained ids of objects with a pattern that matches nothing. A separate finding exists for each of them
 */
function keyFilters(access: Access, explained: ReadonlySet<string>): Finding[] {
  const { devices } = access.policy;
  return access.keys.flatMap((key): Finding[] => {
    const object = keyObject(key);
    if (isEverything(key.username, "login", false) && isEveryDevice(key.filter, false)) {
      return [
        {
          rule: "matches-everything",
          severity: "warning",
          message: `${keyName(key)} admits every login on every device.`,
          object,
          suggestion: "Restrict the logins with login(), and the devices by tags or with hostname().",
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
        message: `${keyName(key)} admits no login: its ${filterText(key.filter)} matches no device.`,
        object,
        field: fieldOf(key.filter),
        suggestion: "Correct the filter, or remove the key.",
      },
    ];
  });
}

/**
 * Returns findings for filters in which some of the tags belong to no device. If all tags of a filter belong to no
 * device, the filter gets the finding `never-matches` instead.
 */
function tagsNowhere({ policy, objects }: Access): Finding[] {
  const known = new Set(policy.devices.flatMap(({ tags }) => tags));
  return objects.flatMap((object): Finding[] => {
    const { hostname, tags = [] } = object.filter;
    const missing = hostname ? [] : tags.filter((tag) => !known.has(tag));
    if (missing.length === 0 || missing.length === tags.length) return [];
    return [
      {
        rule: "tag-nowhere",
        severity: "warning",
        message: `${objectName(object)}: filter.tags contains tags that no device has: ${listed(missing)}.`,
        object: findingObject(object),
        field: "filter.tags",
        suggestion: "Correct the tag, or remove it from the filter.",
        evidence: { tags: missing },
      },
    ];
  });
}

function defaultDeny({ keys, rules }: Access): Finding[] {
  // In identity mode, no keys are in force, and access policies deny by default.
  if (keys.length === 0 || rules.some(deniesEverything)) return [];
  const none = rules.length === 0;
  return [
    {
      rule: "no-default-deny",
      severity: none ? "info" : "warning",
      message: none
        ? "The policy has no active firewall rule, so every login that a key admits is allowed."
        : "No active rule of the policy denies every login from every address on every device, so logins that no rule matches are allowed.",
      object: { kind: "policy", id: "policy", name: "policy" },
      suggestion:
        'Add a rule with the lowest priority that denies username ".*" from sourceIp ".*" on hostname ".*".',
    },
  ];
}

// In a deny rule, an invalid pattern matches everything.
const deniesEverything = ({ action, username, sourceIp, filter }: AccessRule): boolean =>
  action === "deny" &&
  isEverything(username, "login", true) &&
  isEverything(sourceIp, "address", true) &&
  isEveryDevice(filter, true);

/** Period in days. An expiry time after this period is reported as too late. */
const LATE_DAYS = 366;

/** Returns findings for the expiry times of keys, rules and memberships, and for the owners of keys. */
function endFindings({ policy: { keys, rules, members = [] }, time: at }: Access): Finding[] {
  const late = at.getTime() + LATE_DAYS * DAY;
  const ofEnd = (name: string, object: FindingObject, expiresAt: string | undefined): Finding[] => {
    if (expiresAt === undefined) return [];
    const found = { object, field: "expiresAt", evidence: { expiresAt } } as const;
    if (hasPassed(expiresAt, at)) {
      const texts = {
        message: `${name} expired at ${expiresAt}.`,
        suggestion: "Delete the lines that declare it.",
      };
      return [{ ...found, rule: "expired", severity: "info", ...texts }];
    }
    if (Date.parse(expiresAt) <= late) return [];
    const message = `${name} expires at ${expiresAt}, more than a year from now.`;
    const suggestion = "Choose an earlier time, and prolong the access in a review.";
    return [{ ...found, rule: "expires-late", severity: "warning", message, suggestion }];
  };
  const roster = new Map(members.map((one) => [one.id, one]));
  const usesOwners = keys.some(({ owner }) => owner !== undefined);
  return [
    ...keys.flatMap((key) => ofEnd(keyName(key), keyObject(key), key.expiresAt)),
    ...rules.flatMap((rule) => ofEnd(ruleName(rule), ruleObject(rule), rule.expiresAt)),
    ...rules.flatMap((rule): Finding[] => {
      const { action, expiresAt } = rule;
      if (action === "allow" || expiresAt === undefined || !isInForce(rule, at)) return [];
      const found = { object: ruleObject(rule), field: "expiresAt", evidence: { expiresAt } } as const;
      const message = `${ruleName(rule)} denies logins only until ${expiresAt}.`;
      const suggestion = "Remove expiresAt, and delete the rule in a reviewed change.";
      return [{ ...found, rule: "expiring-deny", severity: "warning", message, suggestion }];
    }),
    ...members.flatMap(({ email, expiresAt }) =>
      ofEnd(`The membership of ${quoted(email)}`, { kind: "member", id: email, name: email }, expiresAt),
    ),
    ...keys.flatMap((key): Finding[] => {
      const found = { rule: "key-without-owner", object: keyObject(key), field: "owner" } as const;
      if (key.owner === undefined) {
        if (!usesOwners) return [];
        const message = `${keyName(key)} has no owner, so it keeps its access when a member is removed.`;
        return [{ ...found, severity: "info", message, suggestion: "Declare the owner of the key." }];
      }
      const owner = roster.get(key.owner);
      if (members.length === 0 || owner) return [];
      const message = `${keyName(key)} admits no login: its owner is not a member.`;
      return [{ ...found, severity: "warning", message, suggestion: "Remove the key, or change its owner." }];
    }),
  ];
}

/** The fields of an API key that lint checks. */
export interface LintedApiKey {
  readonly name: string;
  readonly role: string;
  /**
   * Expiry time of the key; null if the key never expires. {@link expiryOf} converts the value that servers return.
   */
  readonly expiresAt: Date | null;
}

/** The fields of a pending invitation that lint checks. */
export interface LintedInvitation {
  readonly email: string;
  readonly role: string;
  /**
   * Expiry time of the invitation; null if the invitation never expires. {@link expiryOf} converts the value that
   * servers return.
   */
  readonly expiresAt: Date | null;
}

/** Options of `lint`: further objects to check, and settings. */
export interface LintOptions {
  /** API keys of the namespace. @default [] */
  readonly apiKeys?: readonly LintedApiKey[];
  /** Trusted workloads of the namespace. @default [] */
  readonly trustedWorkloads?: readonly LintedWorkload[];
  /** Pending invitations. @default [] */
  readonly invitations?: readonly LintedInvitation[];
  /** Period in days. `lint` reports API keys and invitations that expire within this period. @default 14 */
  readonly expiresWithin?: number;
  /** Start of the period `expiresWithin`. @default new Date() */
  readonly now?: Date;
}

/** Default of {@link LintOptions.expiresWithin}. */
export const SOON_DAYS = 14;

/**
 * Converts the expiry time that servers return. Returns null if the object never expires (rules section 15, models
 * section 0).
 * @param expires the value in a server's response. For API keys: seconds since 1970, or -1 for no expiry. For
 *   invitations: a time in RFC 3339 format, or the first day of year 1 for no expiry
 * @throws RangeError if the value is not a date
 */
export function expiryOf(expires: number | string): Date | null {
  const date = new Date(typeof expires === "number" ? expires * 1000 : expires);
  if (Number.isNaN(date.getTime())) throw new RangeError("expires must be seconds since 1970, or a date");
  return date.getTime() > 0 ? date : null;
}

function expiryFindings(options: LintOptions): Finding[] {
  const { apiKeys = [], invitations = [] } = options;
  return [
    ...apiKeys.flatMap(({ name, role, expiresAt }) => {
      const object = { kind: "apiKey", id: name, name } as const;
      if (expiresAt === null) return mayChangePolicy(role) ? [endless(object, role)] : [];
      return soon(object, `API key ${quoted(name)} (${role})`, expiresAt, "Replace it before then.", options);
    }),
    ...invitations.flatMap(({ email, role, expiresAt }) => {
      const object = { kind: "invitation", id: email, name: email } as const;
      const what = `The invitation of ${quoted(email)} as ${role}`;
      return expiresAt
        ? soon(
            object,
            what,
            expiresAt,
            "Remind the user to accept the invitation, or invite the user again.",
            options,
          )
        : [];
    }),
  ];
}

/** Returns true if a role may change the policy. These roles are `administrator` and `owner` (rules section 4). */
const mayChangePolicy = (role: string) => role === "administrator" || role === "owner";

const endless = (object: FindingObject, role: string): Finding => ({
  rule: "api-key-without-expiry",
  severity: "error",
  message: `API key ${quoted(object.name)} has the role ${role} and no expiry.`,
  object,
  field: "expiresAt",
  suggestion: "Replace the API key with a key that expires, or give it a lower role.",
});

function soon(
  object: FindingObject,
  what: string,
  expiresAt: Date,
  suggestion: string,
  { expiresWithin = SOON_DAYS, now = new Date() }: LintOptions,
): Finding[] {
  const left = expiresAt.getTime() - now.getTime();
  if (left <= 0 || left > expiresWithin * DAY) return [];
  const at = expiresAt.toISOString();
  return [
    {
      rule: "expires-soon",
      severity: object.kind === "apiKey" ? "warning" : "info",
      message: `${what} expires at ${at}, within ${expiresWithin} days.`,
      object,
      field: "expiresAt",
      suggestion,
      evidence: { expiresAt: at },
    },
  ];
}
