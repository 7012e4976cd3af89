import {
  type AccessMember,
  hasExpired,
  type KeyLapse,
  type KeyOwner,
  type KeyValidity,
  keyLapse,
} from "./expiry.ts";
import { type PatternSource, patternFound } from "./pattern.ts";

/** The fields of a device that a policy evaluates. */
export interface AccessDevice extends DeviceFacts {
  /** Id of the device. It does not change when the policy changes. */
  readonly uid: string;
}

/** The fields of a public key that a policy evaluates. */
export interface AccessKey extends KeyRule, KeyValidity {
  /** Fingerprint that identifies the key. */
  readonly fingerprint: string;
  /**
   * The SHA256 fingerprint of the key, in the form `SHA256:…`. In identity mode, it identifies the principal. Undefined
   * on servers without access modes, and if the key is not valid.
   */
  readonly sshFingerprint?: string | undefined;
  /** Name of the key. Other keys may have the same name. */
  readonly name: string;
}

/** The fields of a firewall rule that a policy evaluates. */
export interface AccessRule extends FirewallRuleFacts {
  /** Id of the rule on the service. If the service has not created the rule yet, the name of its resource. */
  readonly id: string;
}

/** The objects that authorize logins in legacy mode. */
export interface LegacyPolicy {
  /** The accepted devices. */
  readonly devices: readonly AccessDevice[];
  /** The public keys. */
  readonly keys: readonly AccessKey[];
  /** The firewall rules, oldest first. Community instances have no firewall rules. */
  readonly rules: readonly AccessRule[];
  /**
   * The members of the namespace, for the evaluation of keys with an owner. Undefined if the members could not be read.
   * Keys with an owner are then evaluated as if their owners were members.
   */
  readonly members?: readonly AccessMember[] | undefined;
}

/** The login names and client addresses for which a policy is evaluated. */
export interface EvaluatedLogins {
  /** The evaluated login names. */
  readonly logins: readonly string[];
  /** The evaluated client addresses. IPv4 addresses are in dotted form. */
  readonly addresses: readonly string[];
  /**
   * The address that represents all addresses that no rule and no policy contains. An empty string if there are no such
   * addresses.
   * @default ANY_ADDRESS
   */
  readonly otherAddress?: string;
}

/** A login to evaluate: the key, the login name, the client address and the uid of the device. */
export interface AccessQuestion {
  readonly fingerprint: string;
  readonly login: string;
  readonly address: string;
  readonly uid: string;
  /** The time of the login. @default now */
  readonly at?: Date;
}

/** A selection of devices by name pattern or by tags. An empty filter selects every device. */
export interface DeviceFilter {
  /** The RE2 pattern that matches the device name. The pattern is not anchored. */
  readonly hostname?: string;
  /** Tags of the selected devices. A device matches if it has at least one of these tags. */
  readonly tags?: readonly string[];
}

/** The fields of a public key that determine which logins the key allows. */
export interface KeyRule {
  /** Pattern of the login names. An empty pattern matches every name. */
  readonly username: string;
  /** The devices. */
  readonly filter: DeviceFilter;
}

/** The fields of a device that determine which keys can log in to it. */
export interface DeviceFacts {
  /** The name of the device. */
  readonly name: string;
  /** The tags of the device. */
  readonly tags: readonly string[];
}

/**
 * Returns true if the filter matches the device. An empty filter matches every device (rules section 13).
 * @param broken the result for an invalid pattern, see `patternFound`; default: false
 * @param patterns the source of compiled patterns; default: a cache that all callers share
 */
export function filterMatches(
  filter: DeviceFilter,
  device: DeviceFacts,
  broken = false,
  patterns?: PatternSource,
): boolean {
  if (filter.hostname) return patternFound(filter.hostname, device.name, broken, patterns);
  if (filter.tags && filter.tags.length > 0) return filter.tags.some((tag) => device.tags.includes(tag));
  return true;
}

/**
 * Returns true if a key in the device's namespace allows `login` on the device (rules section 13). An empty username
 * matches every login. An invalid pattern matches nothing.
 * @param patterns the source of compiled patterns; default: a cache that all callers share
 */
export function keyAdmits(
  key: KeyRule,
  device: DeviceFacts,
  login: string,
  patterns?: PatternSource,
): boolean {
  return admitsLogin(key, login, patterns) && filterMatches(key.filter, device, false, patterns);
}

const admitsLogin = (
  { username }: Pick<KeyRule, "username">,
  login: string,
  patterns?: PatternSource,
): boolean => patternFound(username, login, false, patterns);

/** The fields of a firewall rule that determine its effect on logins. */
export interface FirewallRuleFacts {
  /** The action for logins that match the rule. */
  readonly action: "allow" | "deny";
  /** An inactive rule is skipped. */
  readonly active: boolean;
  /** Priority of the rule. If several rules match a login, the rule with the highest priority decides. */
  readonly priority: number;
  /** Pattern of the client addresses. An empty pattern matches every address. */
  readonly sourceIp: string;
  /** Pattern of the login names. An empty pattern matches every name. */
  readonly username: string;
  /** The devices. */
  readonly filter: DeviceFilter;
  /** The time when the rule expires, in RFC 3339. Undefined if it does not expire. An expired rule has no effect. */
  readonly expiresAt?: string | undefined;
}

/** A login to a device. */
export interface LoginAttempt {
  readonly deviceName: string;
  readonly deviceTags: readonly string[];
  readonly login: string;
  /**
   * Address of the client. An IPv4 address is in dotted form, even if the connection used an IPv4-mapped IPv6 address.
   */
  readonly sourceIp: string;
  /** The time of the login. */
  readonly at: Date;
}

/** The firewall's decision about a login. */
export interface FirewallDecision<R> {
  readonly allowed: boolean;
  /**
   * The rule that allows or denies the login. Null if no rule matches, since the firewall allows logins by default.
   */
  readonly rule: R | null;
}

/**
 * Returns the decision of a namespace's firewall rules about a login (rules section 14). A rule must be active and
 * unexpired, and must match the login name, the address and the device. Of these rules, the rule with the highest
 * priority decides. If several rules have this priority, the rule that was created last decides. If no rule matches,
 * the login is allowed. An empty pattern matches everything. An invalid pattern matches everything in a deny rule, and
 * nothing in an allow rule.
 * @param rules in any order, except that rules of the same priority must be in the order of their creation
 */
export function firewallDecides<R extends FirewallRuleFacts>(
  rules: readonly R[],
  attempt: LoginAttempt,
): FirewallDecision<R> {
  return decided(firewallDecision(strongestFirst(rules), attempt));
}

/**
 * Returns the decision of {@link firewallDecides} as a generator, so that other work can run between its steps. A step
 * evaluates at most one pattern.
 * @param rules the rules of the namespace, strongest first
 * @param patterns the source of compiled patterns; default: a cache that all callers share
 */
export function* firewallDecision<R extends FirewallRuleFacts>(
  rules: Iterable<R>,
  attempt: LoginAttempt,
  patterns?: PatternSource,
): Generator<void, FirewallDecision<R>, void> {
  for (const rule of rules) {
    if (!isInForce(rule, attempt.at)) continue;
    let matches = true;
    for (const condition of EACH_CONDITION) {
      matches = condition(rule, attempt, patterns);
      yield;
      if (!matches) break;
    }
    if (matches) return { allowed: rule.action !== "deny", rule };
  }
  return { allowed: true, rule: null };
}

/**
 * The part of the policy that denies a login:
 * - `key`: the namespace does not contain the public key;
 * - `type`: the service refuses keys of the key's type;
 * - `expired`: the key has expired;
 * - `owner`: the owner of the key is not a member;
 * - `login`: the key does not allow the login name;
 * - `device`: the key does not allow logins to the device;
 * - `rule`: the firewall denies the login.
 */
export type DenyingPart = "key" | KeyLapse | "login" | "device" | "rule";

/** The public key of a login, and the membership of its owner. */
export interface KeyCredential {
  /** The key; undefined if the namespace does not contain it. */
  readonly key: (KeyRule & KeyValidity) | undefined;
  /** The membership of the key's owner. Undefined if the key has no owner, or if the owner is not a member. */
  readonly owner: KeyOwner | undefined;
}

/** The decision about a login. */
export interface LoginDecision<R> {
  /** The part of the policy that denies the login; undefined if the login is allowed. */
  readonly deniedBy: DenyingPart | undefined;
  /** The firewall rule that allows or denies the login. Null if no rule matches, or if the key denies the login. */
  readonly rule: R | null;
}

/**
 * Returns the decision about a login as a generator with small steps, like {@link firewallDecision}. This function
 * defines the order of the checks. The first check is the key, regardless of the device ({@link keyRefusal}). The
 * second is the devices of the key, and the third is the firewall. The first check that denies the login decides.
 * @param credential the key, or `"password"` for a login with a password. Only the device checks the password, so this
 *   decision ignores it
 * @param rules the rules of the namespace, strongest first
 * @param patterns the source of compiled patterns; default: a cache that all callers share
 */
export function* loginDecision<R extends FirewallRuleFacts>(
  credential: KeyCredential | "password",
  rules: Iterable<R>,
  attempt: LoginAttempt,
  patterns?: PatternSource,
): Generator<void, LoginDecision<R>, void> {
  if (credential !== "password") {
    const { key, owner } = credential;
    if (!key) return { deniedBy: "key", rule: null };
    const refusal = keyRefusal(key, owner, attempt, patterns);
    if (refusal !== undefined) return { deniedBy: refusal, rule: null };
    yield;
    const device = { name: attempt.deviceName, tags: attempt.deviceTags };
    if (!filterMatches(key.filter, device, false, patterns)) return { deniedBy: "device", rule: null };
    yield;
  }
  const { allowed, rule } = yield* firewallDecision(rules, attempt, patterns);
  return { deniedBy: allowed ? undefined : "rule", rule };
}

/**
 * Returns the reason why a key cannot log in to any device. Returns undefined if the login depends on the key's filter.
 */
export function keyRefusal(
  key: Pick<KeyRule, "username"> & KeyValidity,
  owner: KeyOwner | undefined,
  { login, at }: Pick<LoginAttempt, "login" | "at">,
  patterns?: PatternSource,
): KeyLapse | "login" | undefined {
  return keyLapse(key, owner, at) ?? (admitsLogin(key, login, patterns) ? undefined : "login");
}

/** The membership that is assumed for the owners of keys if the members of a namespace are not known. */
export const ASSUMED_MEMBER: KeyOwner = { isAccepted: true };

/** Runs all steps of a decision, and returns the decision. */
function decided<T>(decision: Generator<void, T, void>): T {
  for (;;) {
    const { done, value } = decision.next();
    if (done) return value;
  }
}

/** Returns true if a rule is active and has not expired. */
export const isInForce = (rule: Pick<FirewallRuleFacts, "active" | "expiresAt">, at: Date): boolean =>
  rule.active && !hasExpired(rule, at);

/**
 * Sorts the rules of a namespace, strongest first. Rules of the same priority must be in the order of their creation,
 * as for {@link firewallDecides}.
 */
export function strongestFirst<R extends FirewallRuleFacts>(rules: readonly R[]): R[] {
  // If several rules have the same priority, the rule that was created last comes first. For this order, the list is
  // reversed before the stable sort.
  return rules.toReversed().sort((left, right) => right.priority - left.priority);
}

/** Returns true if one condition of a rule matches a login. */
type Condition = (rule: FirewallRuleFacts, attempt: LoginAttempt, patterns?: PatternSource) => boolean;

/** Returns true if an invalid pattern is treated as a match in the rule. An invalid pattern must never give access. */
const matchesBroken = (rule: Pick<FirewallRuleFacts, "action">): boolean => rule.action === "deny";

/** The conditions of a rule, by field. The rule matches a login if all conditions match. */
const CONDITIONS: Readonly<Record<"login" | "address" | "device", Condition>> = {
  login: (rule, { login }, patterns) => patternFound(rule.username, login, matchesBroken(rule), patterns),
  address: (rule, { sourceIp }, patterns) =>
    patternFound(rule.sourceIp, sourceIp, matchesBroken(rule), patterns),
  device: (rule, { deviceName, deviceTags }, patterns) =>
    filterMatches(rule.filter, { name: deviceName, tags: deviceTags }, matchesBroken(rule), patterns),
};
const EACH_CONDITION = Object.values(CONDITIONS);
const EACH_PART = Object.entries(CONDITIONS) as [keyof typeof CONDITIONS, Condition][];

/** The part of a rule that does not match a login. `inactive` or `expired` for a rule that is not in force. */
export type Mismatch = "inactive" | "expired" | keyof typeof CONDITIONS;

/** A rule, and its role in the decision about one login. */
export interface ConsideredRule {
  readonly rule: AccessRule;
  /**
   * Role of the rule:
   * - `decides`: the rule is the strongest rule that matches the login;
   * - `would decide`: the rule matches the login, but a stronger rule decides;
   * - `no match`: the rule does not match the login; `mismatches` lists the parts that do not match.
   */
  readonly role: "decides" | "would decide" | "no match";
  /** The parts of the rule that do not match the login. */
  readonly mismatches: readonly Mismatch[];
}

/** The reasons for the decision about a login. */
export interface Explanation {
  readonly allowed: boolean;
  /** The part of the policy that denies the login; undefined if the login is allowed. */
  readonly deniedBy: DenyingPart | undefined;
  readonly key: AccessKey | undefined;
  readonly device: AccessDevice;
  /**
   * The firewall rule that allows or denies the login, even if the key denies it. Null if no rule matches, since the
   * firewall allows logins by default.
   */
  readonly rule: AccessRule | null;
  /** All rules of the namespace, strongest first. */
  readonly considered: readonly ConsideredRule[];
}

/**
 * Explains the decision about one login (rules sections 13 and 14).
 * @throws RangeError if the policy contains no device with the uid in the question
 */
export function explain(policy: LegacyPolicy, question: AccessQuestion): Explanation {
  const { login, address, at = new Date() } = question;
  const device = policy.devices.find(({ uid }) => uid === question.uid);
  if (!device) throw new RangeError(`no device has the uid ${question.uid}`);
  const key = policy.keys.find(({ fingerprint }) => fingerprint === question.fingerprint);
  const owner = policy.members ? policy.members.find(({ id }) => id === key?.owner) : ASSUMED_MEMBER;
  const attempt = { deviceName: device.name, deviceTags: device.tags, login, sourceIp: address, at };
  const rules = strongestFirst(policy.rules);
  const { deniedBy } = decided(loginDecision({ key, owner }, rules, attempt));
  let rule: AccessRule | null = null;
  const considered = rules.map((candidate): ConsideredRule => {
    const mismatches = mismatchesOf(candidate, attempt);
    if (mismatches.length > 0) return { rule: candidate, role: "no match", mismatches };
    const role = rule === null ? "decides" : "would decide";
    rule ??= candidate;
    return { rule: candidate, role, mismatches };
  });
  return { allowed: deniedBy === undefined, deniedBy, key, device, rule, considered };
}

function mismatchesOf(rule: AccessRule, attempt: LoginAttempt): Mismatch[] {
  const mismatches: Mismatch[] = rule.active ? [] : ["inactive"];
  if (hasExpired(rule, attempt.at)) mismatches.push("expired");
  for (const [part, matches] of EACH_PART) if (!matches(rule, attempt)) mismatches.push(part);
  return mismatches;
}
