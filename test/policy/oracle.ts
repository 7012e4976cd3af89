import v8 from "node:v8";
import type {
  AccessDevice,
  AccessKey,
  AccessQuestion,
  AccessRule,
  DeviceFilter,
  NamespacePolicy,
} from "../../sdk/policy/index.ts";

/**
 * A second implementation of the service's rules (sections 13 and 14), as a reference for sdk/policy. The two
 * implementations share no code. The oracle answers one question at a time by brute force, with JavaScript's regular
 * expressions instead of RE2. It is correct only for patterns that both engines interpret in the same way: literals,
 * escaped punctuation, `.`, `^`, `$`, groups, alternations, plain classes, `\d`, `\w`, quantifiers of up to 1000; and
 * for texts of one line in ASCII. `arbitraries.ts` generates such patterns. `patterns.property.test.ts` tests the
 * differences between the engines.
 */

/** The oracle's answer to one access question. */
interface Decision {
  readonly allowed: boolean;
  /** True if the key is registered and admits the login to the device. */
  readonly admitted: boolean;
  /**
   * The firewall rule that decides for this login, address and device. It does not depend on the key. Null if no rule
   * matches.
   */
  readonly rule: AccessRule | null;
}

/**
 * The reason that a firewall rule does not match a login attempt: the rule is inactive, or this field of the rule does
 * not match.
 */
type Misfit = "inactive" | "login" | "address" | "device";

/** Syntax that only RE2 rejects: lookaround, back-references and more than 1000 repetitions. */
const NOT_IN_RE2 = /\(\?<?[=!]|\\[1-9]|\{(?:\d*,)?(?:\d{5,}|[2-9]\d{3}|1(?!000)\d{3})/;

// Without this flag, the match of a random pattern such as (.*.*)+ could run for minutes. With the flag, V8 restarts
// such a match with an engine that needs linear time.
v8.setFlagsFromString("--enable-experimental-regexp-engine-on-excessive-backtracks");

const compiled = new Map<string, RegExp | null>();

/** The compiled pattern; null for a pattern that does not compile. */
function regExpOf(pattern: string): RegExp | null {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  let regExp: RegExp | null = null;
  try {
    if (!NOT_IN_RE2.test(pattern)) regExp = new RegExp(pattern);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  compiled.set(pattern, regExp);
  return regExp;
}

/** True if the pattern compiles in the oracle. */
export const compiles = (pattern: string): boolean => regExpOf(pattern) !== null;

/**
 * True if a pattern matches the text. Returns `broken` if the pattern does not compile; callers pass the safe result.
 */
function matches(pattern: string, text: string, broken: boolean): boolean {
  if (pattern === "") return true;
  return regExpOf(pattern)?.test(text) ?? broken;
}

/** True if a filter matches the device. Returns `broken` if the pattern of the filter does not compile. */
export function filterFits(filter: DeviceFilter, device: AccessDevice, broken: boolean): boolean {
  if (filter.hostname !== undefined && filter.hostname !== "") {
    return matches(filter.hostname, device.name, broken);
  }
  if (filter.tags === undefined || filter.tags.length === 0) return true;
  for (const filterTag of filter.tags) {
    for (const tag of device.tags) if (tag === filterTag) return true;
  }
  return false;
}

/** True if the key admits the login to the device. A pattern that does not compile admits no login. */
const admits = (key: AccessKey, device: AccessDevice, login: string): boolean =>
  matches(key.username, login, false) && filterFits(key.filter, device, false);

/**
 * Returns all reasons why a rule does not match a login attempt, in any order. In a deny rule, a pattern that does not
 * compile matches every attempt.
 */
export function misfits(rule: AccessRule, device: AccessDevice, login: string, address: string): Misfit[] {
  const broken = rule.action === "deny";
  const all: Misfit[] = [];
  if (!rule.active) all.push("inactive");
  if (!matches(rule.username, login, broken)) all.push("login");
  if (!matches(rule.sourceIp, address, broken)) all.push("address");
  if (!filterFits(rule.filter, device, broken)) all.push("device");
  return all;
}

/** The rules in the order of their evaluation: highest priority first, then the newest. */
export function byStrength(rules: readonly AccessRule[]): AccessRule[] {
  const remaining = [...rules];
  const sorted: AccessRule[] = [];
  while (remaining.length > 0) {
    let best = 0;
    for (let at = 1; at < remaining.length; at++) {
      if ((remaining[at] as AccessRule).priority >= (remaining[best] as AccessRule).priority) best = at;
    }
    sorted.push(...remaining.splice(best, 1));
  }
  return sorted;
}

/**
 * Decides by the service's algorithm: it evaluates the rules in ascending order, and the last matching rule decides.
 */
function decidingRule(
  rules: readonly AccessRule[],
  device: AccessDevice,
  login: string,
  address: string,
): AccessRule | null {
  let decided: AccessRule | null = null;
  for (const rule of rules) {
    if (misfits(rule, device, login, address).length > 0) continue;
    if (decided === null || rule.priority >= decided.priority) decided = rule;
  }
  return decided;
}

/** Decides an access question. Throws if the policy does not contain the device. */
export function decide(policy: NamespacePolicy, question: AccessQuestion): Decision {
  const device = policy.devices.find(({ uid }) => uid === question.uid);
  if (device === undefined) throw new Error(`no device ${question.uid}`);
  const key = policy.keys.find(({ fingerprint }) => fingerprint === question.fingerprint);
  const admitted = key !== undefined && admits(key, device, question.login);
  const rule = decidingRule(policy.rules, device, question.login, question.address);
  return { allowed: admitted && rule?.action !== "deny", admitted, rule };
}
