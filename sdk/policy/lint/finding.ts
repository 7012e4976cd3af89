import type { AccessKey, AccessRule, DeviceFilter } from "../decisions.ts";

/** What a finding is about. */
export interface FindingObject {
  readonly kind: "key" | "rule" | "apiKey" | "invitation" | "policy";
  /** A key's fingerprint, a rule's id, an API key's name, an invited user's e-mail address. */
  readonly id: string;
  /** What people call it; rules have no name but their id. */
  readonly name: string;
}

/** A login in which a finding shows; what makes no difference is left out. */
export interface Counterexample {
  readonly login?: string;
  readonly address?: string;
  /** A device's name. */
  readonly device?: string;
}

/** Why there is a finding. */
export interface Evidence {
  readonly counterexample?: Counterexample;
  /** Ids of other rules that the finding is about. */
  readonly rules?: readonly string[];
  /** Tags that no device has. */
  readonly tags?: readonly string[];
  /** When the object expires, RFC 3339. */
  readonly expiresAt?: string;
}

/** Something about a policy that somebody should look at. */
export interface Finding {
  readonly rule: LintCode;
  readonly severity: Severity;
  /** One sentence that names object, field and value. */
  readonly message: string;
  readonly object: FindingObject;
  readonly field?: Field;
  /** One sentence: how to mend it. */
  readonly suggestion?: string;
  readonly evidence?: Evidence;
}

/** The field of an object that a finding is about. */
export type Field =
  | "username"
  | "sourceIp"
  | "filter"
  | "filter.hostname"
  | "filter.tags"
  | "priority"
  | "expiresAt";

/**
 * How serious a finding is:
 * - `error`: the policy cannot be meant as it is written;
 * - `warning`: it lets in more, or does less, than it seems to;
 * - `info`: it could be simpler or clearer.
 */
export type Severity = "error" | "warning" | "info";

/** A kind of finding, described for people. */
export interface LintRule {
  readonly title: string;
  /** The severities that such findings may have. */
  readonly severities: readonly Severity[];
  readonly means: string;
  readonly matters: string;
  readonly mend: string;
}

/** All kinds of findings by their codes, which never change. */
export const lintRules = {
  "broken-pattern": {
    title: "A pattern does not compile",
    severities: ["error"],
    means:
      "A pattern of a public key or an active rule is not a regular expression in RE2 syntax. Servers refuse such a pattern today; older ones stored it.",
    matters:
      "So that nobody gets in by an accident, it counts as no text in a key and in a rule that allows, and as every text in a rule that denies: the key admits nobody, the rule allows nothing or denies more than it was written for.",
    mend: "Write the pattern anew, best with `login()`, `hostname()` or `cidr()`.",
  },
  "mistaken-pattern": {
    title: "A pattern is in another notation",
    severities: ["error"],
    means:
      "A pattern of a public key or an active rule is in CIDR notation (`198.51.100.0/24`), a range of addresses (`10.0.0.1-10.0.0.9`) or a glob (`web-*`). The service takes it for a regular expression.",
    matters:
      "As a regular expression it matches other texts than it seems to, and often none: a rule that denies `198.51.100.0/24` denies nobody.",
    mend: 'Write `cidr("198.51.100.0/24")`, or a regular expression such as `^web-.*$`.',
  },
  "unanchored-pattern": {
    title: "A pattern admits more than it says",
    severities: ["warning", "info"],
    means:
      "A pattern is found anywhere in a text: `root` admits `notroot` too, `10.0.0.1` admits `110.0.0.12`. The finding names such a text, one of the domain or one that was made up; the pattern itself was asked. Of source addresses only real addresses count. Patterns that mean everything (`.*`, an empty one) and open ends that are written out (`^web-.*$`) are no finding. It is an `info` in a rule that denies, and where a pattern begins with `^` and ends with `.`, `:`, `-` or `_`, as one that is meant as a beginning does.",
    matters: "A key or a rule that allows lets in who was not meant, under a name that anybody may choose.",
    mend: 'Write `login("root")`, `hostname("web-1")` or `cidr("10.0.0.1")`, or anchor the pattern with `^` and `$`. Where an end is meant to be open, write `.*` there.',
  },
  "no-default-deny": {
    title: "What no rule matches is allowed",
    severities: ["warning", "info"],
    means:
      "There are public keys, and no active rule denies every login from every address on every device. A rule counts by its own patterns, not by the domain. It is an `info` where there are no active rules at all, as on servers without a firewall.",
    matters:
      "The firewall allows what no rule matches: rules that allow then change little, and a new device or login is open until somebody denies it.",
    mend: 'Add a rule of the lowest priority: `{ action: "deny", priority: 0, sourceIp: ".*", username: ".*", filter: { hostname: ".*" } }`, with rules above it that allow what is meant.',
  },
  contradiction: {
    title: "Two rules of equal priority disagree",
    severities: ["error"],
    means:
      "Two active rules of one priority, one of which allows and one denies, match the same login of the domain, and no stronger rule decides about it. The finding names the login.",
    matters:
      "The rule that was made last wins. Making the same rules anew, in another namespace or after a deletion, may turn the decision round.",
    mend: "Give the rule that is to win the higher priority.",
  },
  "unreachable-rule": {
    title: "A rule never decides",
    severities: ["warning"],
    means:
      "An active rule matches logins of the domain, and about each of them a stronger rule decides. The finding names those rules. Of equal priority the rule made last is the stronger one.",
    matters:
      "What the rule was written for does not happen; if it denies, what it was to keep out may get in.",
    mend: "Raise its priority above the rules that are named, or remove it.",
  },
  "redundant-rule": {
    title: "A rule decides nothing that would not be decided the same without it",
    severities: ["info"],
    means:
      "An active rule decides about logins of the domain, and without it weaker rules, or the firewall's own allowance where none matches, decide the same about all of them. It is said of each rule by itself: of two that are alike each can go, not both.",
    matters: "It has to be read and understood, and does nothing.",
    mend: "Remove it and look again; keep it where logins or devices are to come that only it is for.",
  },
  "never-matches": {
    title: "A key or rule is for nothing",
    severities: ["error", "warning", "info"],
    means:
      "A pattern of a public key or an active rule matches no login name, IP address or device name that there can be: an `error`. Or the filter is for no device of the namespace (`warning`), or a rule's patterns for no login name or address of the domain (`info`, since the domain may lack what the pattern is for).",
    matters: "The name of a device or a tag may be misspelled, or what it was for is gone.",
    mend: "Correct the filter or the pattern, or remove the object. If the domain lacks the login or address, add it.",
  },
  "tag-nowhere": {
    title: "A filter names a tag that no device has",
    severities: ["warning"],
    means:
      "Of the tags of a filter, some are on no device. Where all are so, the filter is for nothing, which is `never-matches`.",
    matters:
      "The tag may be misspelled, so that devices are missing; and whoever puts the tag on a device opens it for the key.",
    mend: "Correct the tag, or take it out of the filter.",
  },
  "matches-everything": {
    title: "A key is for every login on every device",
    severities: ["warning"],
    means:
      "Username and filter of a public key leave nobody and no device out. They are judged by themselves, not by the domain.",
    matters: "Who has the key's private half has every device, root included, and each one that is to come.",
    mend: "Name the logins with `login()`, and the devices by tags or with `hostname()`.",
  },
  "api-key-without-expiry": {
    title: "A powerful API key never expires",
    severities: ["warning"],
    means: "An API key of the role administrator or owner has no expiry.",
    matters:
      "It can change who may reach what. Once it has leaked, nothing but somebody who notices ends it; it also outlives the membership of who made it.",
    mend: "Replace it by one that expires, or give it a lower role.",
  },
  "expires-soon": {
    title: "Something ends soon",
    severities: ["warning", "info"],
    means:
      "An API key (`warning`) or a pending invitation (`info`) expires within 14 days, or the number of days asked for. What has expired already is no finding.",
    matters: "What uses the API key stops working; who is invited cannot accept any more.",
    mend: "Replace the API key, or invite again.",
  },
} as const satisfies Record<string, LintRule>;

/** The code of a kind of finding. */
export type LintCode = keyof typeof lintRules;

const NAMES_MAX = 3;

/** A text that somebody else chose, within a sentence. */
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

// Objects at the beginning of a sentence.
export const keyName = ({ name }: AccessKey): string => `Key ${quoted(name)}`;
export const ruleName = (rule: AccessRule): string => `Rule ${ruleText(rule)}`;

export const ruleText = ({ id, action, priority }: AccessRule): string =>
  `${quoted(id)} (${action}, priority ${priority})`;

export function filterText({ hostname, tags = [] }: DeviceFilter): string {
  if (hostname) return `filter.hostname ${quoted(hostname)}`;
  return tags.length > 0 ? `filter.tags ${listed(tags)}` : "empty filter";
}

/** The field of a filter that says which devices it is for. */
export function fieldOf({ hostname, tags = [] }: DeviceFilter) {
  if (hostname) return "filter.hostname";
  return tags.length > 0 ? "filter.tags" : "filter";
}
