import type { AccessKey, AccessRule, DeviceFilter } from "../decisions.ts";

/** The key, rule, API key or invitation to which a finding refers. */
export interface FindingObject {
  readonly kind: "key" | "rule" | "apiKey" | "invitation" | "policy";
  /**
   * Identifier of the object: a key's fingerprint, a rule's id, an API key's name, or an invited user's e-mail address.
   */
  readonly id: string;
  /** The display name of the object. The display name of a rule is its id. */
  readonly name: string;
}

/** A login that demonstrates the problem. Fields without influence on the problem are absent. */
export interface Counterexample {
  readonly login?: string;
  readonly address?: string;
  /** Name of the device. */
  readonly device?: string;
}

/** Data that supports a finding. */
export interface Evidence {
  readonly counterexample?: Counterexample;
  /** Ids of other affected rules. */
  readonly rules?: readonly string[];
  /** Tags that no device has. */
  readonly tags?: readonly string[];
  /** Expiry of the object, RFC 3339. */
  readonly expiresAt?: string;
}

/** A problem in a policy. */
export interface Finding {
  readonly rule: LintCode;
  readonly severity: Severity;
  /** The problem as one sentence with the object, the field and the value. */
  readonly message: string;
  readonly object: FindingObject;
  readonly field?: Field;
  /** The remedy as one sentence. */
  readonly suggestion?: string;
  readonly evidence?: Evidence;
}

/** The affected field of an object. */
export type Field =
  | "username"
  | "sourceIp"
  | "filter"
  | "filter.hostname"
  | "filter.tags"
  | "priority"
  | "expiresAt";

/**
 * The severity of a finding:
 * - `error`: the policy contains a mistake;
 * - `warning`: the policy admits more logins, or has less effect, than its text suggests;
 * - `info`: the policy could be simpler or clearer.
 */
export type Severity = "error" | "warning" | "info";

/** A kind of finding, described for users. */
export interface LintRule {
  readonly title: string;
  /** The severities that findings of this kind may have. */
  readonly severities: readonly Severity[];
  readonly means: string;
  readonly matters: string;
  readonly mend: string;
}

/** All kinds of findings, by code. A code never changes. */
export const lintRules = {
  "broken-pattern": {
    title: "A pattern does not compile",
    severities: ["error"],
    means:
      "A pattern of a public key or an active rule is not a regular expression in RE2 syntax. Servers reject such a pattern today; older servers stored it.",
    matters:
      "To prevent accidental access, the pattern matches no text in a key or in a rule that allows, and every text in a rule that denies. The key then admits no login, a rule that allows has no effect, and a rule that denies may deny more than intended.",
    mend: "Rewrite the pattern, preferably with `login()`, `hostname()` or `cidr()`.",
  },
  "mistaken-pattern": {
    title: "A pattern is in another notation",
    severities: ["error"],
    means:
      "A pattern of a public key or an active rule is in CIDR notation (`198.51.100.0/24`), a range of addresses (`10.0.0.1-10.0.0.9`) or a glob (`web-*`). The service interprets it as a regular expression.",
    matters:
      "As a regular expression, the pattern matches other texts than intended, and often none: a rule that denies `198.51.100.0/24` denies no login.",
    mend: 'Write `cidr("198.51.100.0/24")`, or a regular expression such as `^web-.*$`.',
  },
  "unanchored-pattern": {
    title: "A pattern matches more than it spells out",
    severities: ["warning", "info"],
    means:
      "A pattern matches any part of a text: `root` also admits `notroot`, and `10.0.0.1` also admits `110.0.0.12`. The finding contains such a text, either an evaluated one or an invented one, on which the pattern was tested. For source addresses, only valid addresses count. Patterns that match everything (`.*` or an empty pattern) and explicit open ends (`^web-.*$`) are not reported. The severity is `info` in a rule that denies. It is also `info` for a pattern that begins with `^` and ends with `.`, `:`, `-` or `_`, because such a pattern is usually intended as a prefix.",
    matters:
      "A key or a rule that allows admits unintended logins or addresses, under names that other users may choose.",
    mend: 'Use `login("root")`, `hostname("web-1")` or `cidr("10.0.0.1")`, or anchor the pattern with `^` and `$`. Write `.*` at an end that should stay open.',
  },
  "no-default-deny": {
    title: "The policy has no default deny rule",
    severities: ["warning", "info"],
    means:
      "There are public keys, and no active rule denies every login from every address on every device. A rule counts by its patterns, not by the evaluated logins and addresses. The severity is `info` if there are no active rules at all, as on servers without a firewall.",
    matters:
      "The firewall allows logins that no rule matches. Rules that allow then change little, and a new device or login is open until a rule denies it.",
    mend: 'Add a rule with the lowest priority: `{ action: "deny", priority: 0, sourceIp: ".*", username: ".*", filter: { hostname: ".*" } }`. Add rules with a higher priority that allow the intended logins.',
  },
  contradiction: {
    title: "Two rules of equal priority disagree",
    severities: ["error"],
    means:
      "Two active rules of the same priority match the same evaluated login. One rule allows it and the other denies it, and no stronger rule decides it. The finding contains the login.",
    matters:
      "The rule that was created last wins. If the same rules are recreated, in another namespace or after a deletion, the decision may change.",
    mend: "Give a higher priority to the rule that should win.",
  },
  "unreachable-rule": {
    title: "A rule never decides",
    severities: ["warning"],
    means:
      "An active rule matches evaluated logins, but a stronger rule decides each of them. The finding lists the stronger rules. Of rules with the same priority, the rule that was created last is stronger.",
    matters: "The rule has no effect. If it denies, it may not keep out the logins that it was written for.",
    mend: "Raise its priority above the listed rules, or remove it.",
  },
  "redundant-rule": {
    title: "A rule changes no decision",
    severities: ["info"],
    means:
      "An active rule decides evaluated logins, but all of these decisions would be the same without it. Weaker rules decide the same, or no other rule matches and the firewall allows the login. Each rule is checked separately: either of two equal rules can be removed, but not both.",
    matters: "The rule has no effect, but readers must understand it.",
    mend: "Remove the rule, then run lint again. Keep the rule if it is for future logins or devices.",
  },
  "never-matches": {
    title: "A key or rule matches nothing",
    severities: ["error", "warning", "info"],
    means:
      "There are three cases. `error`: a pattern of a public key or an active rule matches no possible login name, IP address or device name. `warning`: the filter matches no device of the namespace. `info`: a rule's patterns match no evaluated login name or address. The pattern may be for a login or address that was not evaluated.",
    matters: "The name of a device or a tag may be misspelled, or the intended object no longer exists.",
    mend: "Correct the filter or the pattern, or remove the object. If the login or address was not evaluated, add it.",
  },
  "tag-nowhere": {
    title: "A filter contains a tag that no device has",
    severities: ["warning"],
    means:
      "No device has some of the tags of a filter. If no device has any of the tags, the filter matches nothing, and the finding is `never-matches`.",
    matters:
      "The tag may be misspelled, so that the filter misses devices. A user who adds the tag to a device also opens the device to the key.",
    mend: "Correct the tag, or remove it from the filter.",
  },
  "matches-everything": {
    title: "A key admits every login on every device",
    severities: ["warning"],
    means:
      "The username and the filter of a public key exclude no login and no device. They are checked by themselves, not by the evaluated logins and devices.",
    matters:
      "The holder of the private key can log in to every device, also as root, and to every future device.",
    mend: "Restrict the logins with `login()`, and the devices by tags or with `hostname()`.",
  },
  "api-key-without-expiry": {
    title: "A privileged API key never expires",
    severities: ["warning"],
    means: "An API key with the role administrator or owner has no expiry.",
    matters:
      "The key can change access. A leaked key stays valid until an administrator revokes it, and a key stays valid after its creator has left the namespace.",
    mend: "Replace it with a key that expires, or give it a lower role.",
  },
  "expires-soon": {
    title: "An API key or invitation expires soon",
    severities: ["warning", "info"],
    means:
      "An API key (`warning`) or a pending invitation (`info`) expires within 14 days, or within the requested number of days. Expired objects are not reported.",
    matters: "Clients of an expired API key stop working. A user cannot accept an expired invitation.",
    mend: "Replace the API key, or invite the user again.",
  },
} as const satisfies Record<string, LintRule>;

/** The code of a kind of finding. */
export type LintCode = keyof typeof lintRules;

const NAMES_MAX = 3;

/** Returns a text from a user in quotes, for use in a sentence. */
export const quoted = (text: string): string => JSON.stringify(text);

export function listed(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  const shown = names.slice(0, NAMES_MAX).map(quoted);
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  return shown.length < 2 ? shown.join() : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

export const keyObject = ({ fingerprint: id, name }: AccessKey): FindingObject => ({ kind: "key", id, name });
export const ruleObject = ({ id }: AccessRule): FindingObject => ({ kind: "rule", id, name: id });
export const objectId = ({ kind, id }: FindingObject): string => `${kind} ${id}`;

// The functions below return the description of an object for the start of a sentence.
export const keyName = ({ name }: AccessKey): string => `Key ${quoted(name)}`;
export const ruleName = (rule: AccessRule): string => `Rule ${ruleText(rule)}`;

export const ruleText = ({ id, action, priority }: AccessRule): string =>
  `${quoted(id)} (${action}, priority ${priority})`;

export function filterText({ hostname, tags = [] }: DeviceFilter): string {
  if (hostname) return `filter.hostname ${quoted(hostname)}`;
  return tags.length > 0 ? `filter.tags ${listed(tags)}` : "empty filter";
}

/** Returns the path of the field with which a filter selects devices. */
export function fieldOf({ hostname, tags = [] }: DeviceFilter) {
  if (hostname) return "filter.hostname";
  return tags.length > 0 ? "filter.tags" : "filter";
}
