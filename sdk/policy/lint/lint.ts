import type { Access } from "../access.ts";
import type { AccessRule, DeviceFilter } from "../decisions.ts";
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

/** @param explained ids of the objects with a wrong pattern, whose finding explains why they match nothing */
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

/** What lint looks at in an API key. */
export interface LintedApiKey {
  readonly name: string;
  readonly role: string;
  /** Null for never; {@link expiryOf} makes it of what servers say. */
  readonly expiresAt: Date | null;
}

/** What lint looks at in a pending invitation. */
export interface LintedInvitation {
  readonly email: string;
  readonly role: string;
  /** Null for never; {@link expiryOf} makes it of what servers say. */
  readonly expiresAt: Date | null;
}

/** What `lint` looks at beside the policy. */
export interface LintOptions {
  /** @default [] */
  readonly apiKeys?: readonly LintedApiKey[];
  /** Pending ones. @default [] */
  readonly invitations?: readonly LintedInvitation[];
  /** What expires within so many days is a finding. @default 14 */
  readonly soonDays?: number;
  /** The time from which these days count. @default new Date() */
  readonly now?: Date;
}

/** Days before its end in which something expires soon. */
export const SOON_DAYS = 14;
const DAY = 24 * 60 * 60 * 1000;

/**
 * When something expires; null for never (rules section 15, models section 0).
 * @param expires as servers say it: of API keys in seconds since 1970, with -1 for never; of invitations as RFC 3339,
 * with the first day of year 1 for never
 * @throws RangeError when the text is no date
 */
export function expiryOf(expires: number | string): Date | null {
  const date = new Date(typeof expires === "number" ? expires * 1000 : expires);
  if (Number.isNaN(date.getTime())) throw new RangeError("expires: must be seconds since 1970, or a date");
  return date.getTime() > 0 ? date : null;
}

function expiryFindings(options: LintOptions): Finding[] {
  const { apiKeys = [], invitations = [] } = options;
  return [
    ...apiKeys.flatMap(({ name, role, expiresAt }) => {
      const object = { kind: "apiKey", id: name, name } as const;
      if (expiresAt === null) return mayChangePolicy(role) ? [endless(object, role)] : [];
      return soon(object, `API key ${quoted(name)} (${role})`, expiresAt, "Replace it before.", options);
    }),
    ...invitations.flatMap(({ email, role, expiresAt }) => {
      const object = { kind: "invitation", id: email, name: email } as const;
      const what = `The invitation of ${quoted(email)} as ${role}`;
      return expiresAt
        ? soon(object, what, expiresAt, "Ask for its acceptance, or invite again.", options)
        : [];
    }),
  ];
}

/** Rules section 4: from administrator upwards. */
const mayChangePolicy = (role: string) => role === "administrator" || role === "owner";

const endless = (object: FindingObject, role: string): Finding => ({
  rule: "api-key-without-expiry",
  severity: "warning",
  message: `API key ${quoted(object.name)} has the role ${role} and no expiry.`,
  object,
  field: "expiresAt",
  suggestion: "Replace it by one that expires, or give it a lower role.",
});

function soon(
  object: FindingObject,
  what: string,
  expiresAt: Date,
  suggestion: string,
  { soonDays = SOON_DAYS, now = new Date() }: LintOptions,
): Finding[] {
  const left = expiresAt.getTime() - now.getTime();
  if (left <= 0 || left > soonDays * DAY) return [];
  const at = expiresAt.toISOString();
  return [
    {
      rule: "expires-soon",
      severity: object.kind === "apiKey" ? "warning" : "info",
      message: `${what} expires at ${at}, within ${soonDays} days.`,
      object,
      field: "expiresAt",
      suggestion,
      evidence: { expiresAt: at },
    },
  ];
}
