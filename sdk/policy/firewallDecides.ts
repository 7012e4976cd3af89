import { type DeviceFilter, filterMatches } from "./keyAdmits.ts";
import { patternFound } from "./pattern.ts";

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
