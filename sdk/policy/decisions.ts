import { patternFound } from "./pattern.ts";

/** A device as the policy sees it. */
export interface AccessDevice extends DeviceFacts {
  /** Identifies the device, before and after a change. */
  readonly uid: string;
}

/** A public key as the policy sees it. */
export interface AccessKey extends KeyRule {
  /** Identifies the key. */
  readonly fingerprint: string;
  /** Its name, which other keys may have too. */
  readonly name: string;
}

/** A firewall rule as the policy sees it. */
export interface AccessRule extends FirewallRuleFacts {
  /** Identifies the rule: its id on the service, or the resource's name where it is still to be made. */
  readonly id: string;
}

/** What a namespace has that decides who can reach what. */
export interface AccessPolicy {
  readonly devices: readonly AccessDevice[];
  readonly keys: readonly AccessKey[];
  /** In the order in which they were made. Community instances have none (rules section 14). */
  readonly rules: readonly AccessRule[];
}

/** The login names and client addresses for which a policy is evaluated. */
export interface AccessDomain {
  readonly logins: readonly string[];
  /** As text, IPv4 in its dotted form. */
  readonly addresses: readonly string[];
}

/** The question whether the holder of a key may log in: as `login`, from `address`, on the device `uid`. */
export interface AccessQuestion {
  readonly fingerprint: string;
  readonly login: string;
  readonly address: string;
  readonly uid: string;
}

/** Which devices something is for: by name pattern or by tags. */
export interface DeviceFilter {
  readonly hostname?: string;
  readonly tags?: readonly string[];
}

/** The parts of a public key that decide whom it admits. */
export interface KeyRule {
  /** Pattern on the login name. */
  readonly username: string;
  readonly filter: DeviceFilter;
}

/** The parts of a device that decide which keys are for it. */
export interface DeviceFacts {
  readonly name: string;
  readonly tags: readonly string[];
}

/**
 * True when the filter is for the device; an empty one is for every device (rules section 13).
 * @param broken the answer for a pattern that does not compile, see `patternFound`; by default false
 */
export function filterMatches(filter: DeviceFilter, device: DeviceFacts, broken = false): boolean {
  if (filter.hostname) return patternFound(filter.hostname, device.name, broken);
  if (filter.tags && filter.tags.length > 0) return filter.tags.some((tag) => device.tags.includes(tag));
  return true;
}

/**
 * True when a key that is registered in the device's namespace admits `login` on the device (rules
 * section 13). An empty username matches every login. A pattern that does not compile matches nothing.
 */
export function keyAdmits(key: KeyRule, device: DeviceFacts, login: string): boolean {
  return patternFound(key.username, login, false) && filterMatches(key.filter, device);
}

/** The parts of a firewall rule that decide about logins. */
export interface FirewallRuleFacts {
  readonly action: "allow" | "deny";
  /** An inactive rule is skipped. */
  readonly active: boolean;
  /** Of the rules that match, the one with the highest number decides. */
  readonly priority: number;
  /** Pattern on the client's address. */
  readonly sourceIp: string;
  /** Pattern on the login name. */
  readonly username: string;
  readonly filter: DeviceFilter;
}

/** Who wants to log in where. */
export interface LoginAttempt {
  readonly deviceName: string;
  readonly deviceTags: readonly string[];
  readonly login: string;
  /** The client's address; IPv4, also where it is mapped into IPv6, in its dotted form. */
  readonly sourceIp: string;
}

/** What the firewall says to a login. */
export interface FirewallDecision<R> {
  readonly allowed: boolean;
  /** The rule that decided; null when none matched, which allows. */
  readonly rule: R | null;
}

/**
 * Decides about a login by the firewall rules of the device's namespace (rules section 14). Of the active rules that
 * match login, address and device, the one with the highest priority decides; of several with that priority, the one
 * that was made last. Where no rule matches, the login is allowed. Empty patterns match everything. A pattern that does
 * not compile matches in a rule that denies, and does not in one that allows.
 * @param rules in any order, but those of one priority in the order in which they were made
 */
export function firewallDecides<R extends FirewallRuleFacts>(
  rules: readonly R[],
  attempt: LoginAttempt,
): FirewallDecision<R> {
  let decisive: R | null = null;
  for (const rule of rules) {
    if (decisive !== null && rule.priority < decisive.priority) continue;
    if (rule.active && matches(rule, attempt)) decisive = rule;
  }
  return { allowed: decisive?.action !== "deny", rule: decisive };
}

/** The rules of a namespace, the strongest first; they are given as to {@link firewallDecides}. */
export function strongestFirst<R extends FirewallRuleFacts>(rules: readonly R[]): R[] {
  // Of rules with one priority the one that was made last comes first: sorting keeps the reversed order.
  return rules.toReversed().sort((left, right) => right.priority - left.priority);
}

function matches(rule: FirewallRuleFacts, attempt: LoginAttempt): boolean {
  const broken = rule.action === "deny";
  const device = { name: attempt.deviceName, tags: attempt.deviceTags };
  return (
    patternFound(rule.username, attempt.login, broken) &&
    patternFound(rule.sourceIp, attempt.sourceIp, broken) &&
    filterMatches(rule.filter, device, broken)
  );
}

/** A part of a rule that does not match a login; `inactive` when the rule is skipped. */
export type Mismatch = "inactive" | "login" | "address" | "device";

/** A rule, and what it has to do with one login. */
export interface ConsideredRule {
  readonly rule: AccessRule;
  /**
   * - `decides`: it is the strongest rule that matches;
   * - `would decide`: it matches, but a stronger rule decides;
   * - `misses`: it does not match; `misses` names the parts.
   */
  readonly role: "decides" | "would decide" | "misses";
  /** The parts that do not match. */
  readonly misses: readonly Mismatch[];
}

/** Why a login is allowed, or is not. */
export interface Explanation {
  readonly allowed: boolean;
  /**
   * What refuses the login; undefined when it is allowed.
   * - `key`: the namespace has no such key;
   * - `login`: the key is for other login names;
   * - `device`: the key is for other devices;
   * - `rule`: the firewall denies it.
   */
  readonly refusedBy: "key" | "login" | "device" | "rule" | undefined;
  readonly key: AccessKey | undefined;
  readonly device: AccessDevice;
  /** The rule that decides, also where the key refuses already; null where no rule matches, which allows. */
  readonly rule: AccessRule | null;
  /** All rules of the namespace, strongest first. */
  readonly considered: readonly ConsideredRule[];
}

/**
 * Explains the decision about one login (rules sections 13 and 14).
 * @throws RangeError when the policy has no device with the question's uid
 */
export function explain(policy: AccessPolicy, question: AccessQuestion): Explanation {
  const { login, address } = question;
  const device = policy.devices.find(({ uid }) => uid === question.uid);
  if (!device) throw new RangeError(`no device has the uid ${question.uid}`);
  const key = policy.keys.find(({ fingerprint }) => fingerprint === question.fingerprint);
  const attempt = { deviceName: device.name, deviceTags: device.tags, login, sourceIp: address };
  const { allowed, rule } = firewallDecides(policy.rules, attempt);
  const refusedBy = keyRefusal(key, device, login) ?? (allowed ? undefined : "rule");
  const considered = strongestFirst(policy.rules).map((candidate): ConsideredRule => {
    const misses = mismatches(candidate, device, question);
    if (misses.length > 0) return { rule: candidate, role: "misses", misses };
    return { rule: candidate, role: candidate === rule ? "decides" : "would decide", misses };
  });
  return { allowed: refusedBy === undefined, refusedBy, key, device, rule, considered };
}

function keyRefusal(key: AccessKey | undefined, device: AccessDevice, login: string) {
  if (!key) return "key";
  if (!patternFound(key.username, login, false)) return "login";
  return filterMatches(key.filter, device) ? undefined : "device";
}

function mismatches(rule: AccessRule, device: AccessDevice, { login, address }: AccessQuestion): Mismatch[] {
  const broken = rule.action === "deny";
  return [
    ...(rule.active ? [] : (["inactive"] as const)),
    ...(patternFound(rule.username, login, broken) ? [] : (["login"] as const)),
    ...(patternFound(rule.sourceIp, address, broken) ? [] : (["address"] as const)),
    ...(filterMatches(rule.filter, device, broken) ? [] : (["device"] as const)),
  ];
}
