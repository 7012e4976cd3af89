import type { DecidingObject } from "../decider.ts";
import type { AccessKey, AccessRule, DeviceFilter } from "../decisions.ts";
import type { AccessPolicy } from "../identity.ts";

/** The object to which a finding refers. */
export interface FindingObject {
  readonly kind:
    | "key"
    | "rule"
    | "accessPolicy"
    | "apiKey"
    | "trustedWorkload"
    | "invitation"
    | "member"
    | "policy";
  /**
   * Identifier of the object. For a key, its fingerprint. For a rule, access policy or trusted workload, its id. For an
   * API key, its name. For a member or an invited user, the e-mail address.
   */
  readonly id: string;
  /** The display name of the object. The display name of a rule is its id. */
  readonly name: string;
}

/**
 * An example login for which the problem occurs. If the login name, address or device does not matter, it is omitted.
 */
export interface Counterexample {
  readonly login?: string;
  readonly address?: string;
  /** Name of the device. */
  readonly device?: string;
}

/** Details of a finding in a form that programs can process. */
export interface Evidence {
  readonly counterexample?: Counterexample;
  /** Ids of other affected rules. */
  readonly rules?: readonly string[];
  /** Tags that no device has. */
  readonly tags?: readonly string[];
  /** Expiry time of the object, RFC 3339. */
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
  | "subject"
  | "expiresAt"
  | "owner"
  | "claims";

/**
 * The severity of a finding:
 * - `error`: the policy contains a mistake;
 * - `warning`: the policy allows more logins, or has less effect, than a reader would expect;
 * - `info`: the policy could be simpler or clearer.
 */
export type Severity = "error" | "warning" | "info";

/** A kind of finding, with a description for users. */
export interface LintRule {
  readonly title: string;
  /** The possible severities of findings of this kind. */
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
      "A pattern of a public key, an active rule or an access policy is not a regular expression in RE2 syntax. Current servers reject such a pattern, but older servers stored it.",
    matters:
      "To prevent accidental access, an invalid pattern matches nothing in a key or an allow rule, and everything in a deny rule. As a result, the key admits no login, the allow rule has no effect, and the deny rule may deny more than intended.",
    mend: "Rewrite the pattern, preferably with `login()`, `hostname()` or `cidr()`.",
  },
  "mistaken-pattern": {
    title: "A pattern is not written as a regular expression",
    severities: ["error"],
    means:
      "A pattern of a public key or an active rule is in CIDR notation (`198.51.100.0/24`), a range of addresses (`10.0.0.1-10.0.0.9`) or a glob (`web-*`). The service interprets it as a regular expression.",
    matters:
      "As a regular expression, the pattern matches unintended strings, and often no string at all. Example: a rule that denies `198.51.100.0/24` denies no login.",
    mend: 'Write `cidr("198.51.100.0/24")`, or a regular expression such as `^web-.*$`.',
  },
  "unanchored-pattern": {
    title: "A pattern is not anchored and matches unintended strings",
    severities: ["warning", "info"],
    means:
      "A pattern without anchors can match any part of a string: `root` also admits `notroot`, and `10.0.0.1` also admits `110.0.0.12`. The finding contains an example of an unintended string that the pattern matches: an evaluated login name, address or device name, or an invented string. For source addresses, the example is a valid address. Patterns that match everything (`.*` or an empty pattern) and explicit open ends (`^web-.*$`) are not reported. The severity is `info` for a pattern in a deny rule, and for a pattern that begins with `^` and ends with `.`, `:`, `-` or `_`, because such a pattern is usually intended as a prefix.",
    matters:
      "A key or an allow rule admits unintended logins or addresses. Other users may be able to choose a name that the pattern matches.",
    mend: 'Use `login("root")`, `hostname("web-1")` or `cidr("10.0.0.1")`, or anchor the pattern with `^` and `$`. Add `.*` where the pattern should match any string.',
  },
  "no-default-deny": {
    title: "The policy has no default deny rule",
    severities: ["warning", "info"],
    means:
      "The policy has public keys, but no active rule denies every login from every address on every device. The check uses the patterns of the rules, not the evaluated logins and addresses. The severity is `info` if the policy has no active rules, as on servers without a firewall.",
    matters:
      "The firewall allows logins that no rule matches. Allow rules therefore have little effect, and access to a new device or login name is allowed until a rule denies it.",
    mend: 'Add a rule with the lowest priority: `{ action: "deny", priority: 0, sourceIp: ".*", username: ".*", filter: { hostname: ".*" } }`. Add rules with a higher priority that allow the intended logins.',
  },
  contradiction: {
    title: "Two rules with the same priority conflict",
    severities: ["error"],
    means:
      "Two active rules of the same priority match the same evaluated login. One rule allows the login and the other rule denies it, and no stronger rule decides the login. The finding contains the login.",
    matters:
      "The rule that was created last decides. If the rules are created again in a different order, for example in another namespace or after a deletion, the decision changes.",
    mend: "Give a higher priority to the rule that should decide.",
  },
  "unreachable-rule": {
    title: "A rule never decides",
    severities: ["warning"],
    means:
      "An active rule matches evaluated logins, but a stronger rule decides each of them. The finding lists the stronger rules. Of rules with the same priority, the rule that was created last is stronger.",
    matters: "The rule has no effect. If the rule is a deny rule, logins that it should deny may be allowed.",
    mend: "Raise the priority of the rule above the listed rules, or remove the rule.",
  },
  "redundant-rule": {
    title: "A rule changes no decision",
    severities: ["info"],
    means:
      "An active rule decides evaluated logins, but all of these decisions would be the same without the rule: a weaker rule makes the same decision, or no other rule matches and the firewall allows the login. The check tests the removal of one rule at a time. Of two equal rules, you can remove either rule, but not both.",
    matters: "The rule has no effect, but makes the policy harder to read.",
    mend: "Remove the rule, then run lint again. Keep the rule if it is for future logins or devices.",
  },
  "never-matches": {
    title: "A key, rule or access policy matches nothing",
    severities: ["error", "warning", "info"],
    means:
      "There are four cases. `error`: a pattern of a public key, an active rule or an access policy matches no possible login name, IP address or device name. `warning`: the filter matches no device of the namespace, or the subject of an access policy matches no user and no service account. `info`: a rule's patterns match no evaluated login name or address. In the case `info`, the rule may be intended for a login or address that was not evaluated.",
    matters:
      "The name of a device or a tag may be misspelled, or the intended object may no longer exist. The key or rule then has no effect.",
    mend: "Correct the filter or the pattern, or remove the object. If the intended login or address was not evaluated, add it to the evaluated logins and addresses.",
  },
  "tag-nowhere": {
    title: "A filter contains a tag that no device has",
    severities: ["warning"],
    means:
      "A filter contains at least one tag that no device has, and at least one tag that a device has. If no device has any of the tags, the filter matches nothing, and the finding is `never-matches`.",
    matters:
      "The tag may be misspelled, so that the filter does not match all intended devices. A user who adds the tag to a device also gives the key access to the device.",
    mend: "Correct the tag, or remove it from the filter.",
  },
  "matches-everything": {
    title: "A key or access policy allows every login on every device",
    severities: ["warning"],
    means:
      "The username and the filter of a public key exclude no login and no device, or an access policy allows every login of every member on every device. The check uses the patterns and tags themselves, not the evaluated logins and the existing devices.",
    matters:
      "The holder of the private key can log in to every current and future device, including as root.",
    mend: "Restrict the logins with `login()`, and the devices by tags or with `hostname()`.",
  },
  "api-key-without-expiry": {
    title: "A privileged API key never expires",
    severities: ["error"],
    means: "An API key with the role administrator or owner has no expiry.",
    matters:
      "The API key can change access. A leaked API key stays valid until an administrator revokes it. An API key also stays valid after its creator has left the namespace.",
    mend: "Replace the API key with a key that expires, or give it a lower role.",
  },
  "wide-workload": {
    title: "A trusted workload accepts tokens that other users may get",
    severities: ["error"],
    means:
      "For a workload with a role above observer, lint must know the issuer, and the claims must identify the owner, the project and a place that the owner can protect, all without a wildcard. Otherwise, lint reports the workload. Lint knows `https://token.actions.githubusercontent.com` (including addresses that end with the name of an enterprise), `https://gitlab.com` and `https://accounts.google.com`. For GitHub and GitLab, the place is a branch, a tag or an environment. A reusable workflow of GitHub (`job_workflow_ref`) is not a place, because jobs of every branch can call the workflow. For Google, the address or the number of a service account identifies the owner, the project and the place. For a workload with the role observer and an issuer that lint knows, the claims must identify the owner. For a workload with the role observer and any other issuer, the claims must include a claim that identifies a program or a customer of the provider, such as `sub`, `client_id`, `oid` or `organization_slug`. An e-mail address is accepted only together with `email_verified`, or if it is the address of a Google service account. The finding does not depend on the settings of the provider: lint cannot check whether a branch or an environment is protected.",
    matters:
      "Each program whose token matches gets the role. A user who can create a branch, an environment, a repository or an account that matches can use the role.",
    mend: "Declare the claims with `githubActions()` or `gitlabCi()`. Require the repository or project, and `ref` or `environment`, without wildcards. Protect the branch, the tag or the environment. Use the role observer for pull requests. For another issuer, such as a Kubernetes cluster or your own GitLab server, check who controls the issuer and the programs, then accept the finding: see [Accept an issuer that lint does not know](workload-identity.md#accept-an-issuer-that-lint-does-not-know).",
  },
  "expires-soon": {
    title: "An API key or invitation expires soon",
    severities: ["warning", "info"],
    means:
      "An API key (`warning`) or a pending invitation (`info`) expires within 14 days, or within the requested number of days. Expired objects are not reported.",
    matters: "Clients of an expired API key stop working. A user cannot accept an expired invitation.",
    mend: "Replace the API key, or invite the user again.",
  },
  expired: {
    title: "A key, rule or membership has expired",
    severities: ["info"],
    means:
      "The time `expiresAt` of a public key, a firewall rule or a member has passed. The object gives no access and no longer affects decisions. Servers that do not support expiry do not return this time.",
    matters: "The declaration has no effect, but makes the policy harder to read.",
    mend: "Delete the lines that declare the object. Choose a later time if the access is still needed.",
  },
  "expires-late": {
    title: "Access expires more than a year from now",
    severities: ["warning"],
    means:
      "The time `expiresAt` of a public key, a firewall rule or a member is more than 366 days from now.",
    matters: "Temporary access that lasts for years is not reviewed again.",
    mend: "Choose an earlier time, and prolong the access in a review when it is still needed.",
  },
  "expiring-deny": {
    title: "A rule that denies logins expires",
    severities: ["warning"],
    means:
      "A firewall rule that denies logins has the field `expiresAt`. After this time, only the other rules apply to the logins that the rule matches.",
    matters:
      "Logins that the rule denied may then be allowed. A review lists the access that starts at this time.",
    mend: "Remove `expiresAt`, and delete the rule in a reviewed change when it is no longer needed. To list the access after this time, use `gatehouse access --at`.",
  },
  "key-without-owner": {
    title: "A key has no owner, or its owner is not a member",
    severities: ["warning", "info"],
    means:
      "`info`: a public key has no owner, although other keys of the namespace have one. `warning`: the owner of a key is not a member, so the key admits no login.",
    matters:
      "If a member is removed, the member's keys lose their access, but keys without an owner keep it.",
    mend: "Declare the owner of the key. Remove keys of users who are no longer members.",
  },
} as const satisfies Record<string, LintRule>;

/** The code of a kind of finding. */
export type LintCode = keyof typeof lintRules;

const NAMES_MAX = 3;

/** Returns a user's string in quotes, for use in a sentence. */
export const quoted = (text: string): string => JSON.stringify(text);

export function listed(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  const shown = names.slice(0, NAMES_MAX).map(quoted);
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  return shown.length < 2 ? shown.join() : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

export const keyObject = ({ fingerprint: id, name }: AccessKey): FindingObject => ({ kind: "key", id, name });
export const policyObject = ({ id, name }: AccessPolicy): FindingObject => ({
  kind: "accessPolicy",
  id,
  name,
});
export const ruleObject = ({ id }: AccessRule): FindingObject => ({ kind: "rule", id, name: id });
export const objectId = ({ kind, id }: FindingObject): string => `${kind} ${id}`;

export const findingObject = ({ kind, id, name }: DecidingObject): FindingObject => ({ kind, id, name });

// The functions below return the description of an object for the start of a sentence.
export const objectName = ({ noun, name, details }: DecidingObject): string =>
  `${noun.charAt(0).toUpperCase()}${noun.slice(1)} ${quoted(name)}${details === undefined ? "" : ` (${details})`}`;
export const keyName = ({ name }: AccessKey): string => `Key ${quoted(name)}`;
export const policyName = ({ name, action }: AccessPolicy): string =>
  `Access policy ${quoted(name)} (${action})`;
export const ruleName = (rule: AccessRule): string => `Rule ${ruleText(rule)}`;

export const ruleText = ({ id, action, priority }: AccessRule): string =>
  `${quoted(id)} (${action}, priority ${priority})`;

export function filterText({ hostname, tags = [] }: DeviceFilter): string {
  if (hostname) return `filter.hostname ${quoted(hostname)}`;
  return tags.length > 0 ? `filter.tags ${listed(tags)}` : "empty filter";
}

/** Returns the path of the filter field that selects devices. */
export function fieldOf({ hostname, tags = [] }: DeviceFilter) {
  if (hostname) return "filter.hostname";
  return tags.length > 0 ? "filter.tags" : "filter";
}
