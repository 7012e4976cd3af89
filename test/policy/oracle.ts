import v8 from "node:v8";
import type {
  AccessDevice,
  AccessKey,
  AccessPolicy,
  AccessQuestion,
  AccessRule,
  DeviceFilter,
} from "../../sdk/policy/index.ts";

/**
 * A second reading of the service's rules (sections 13 and 14), to hold sdk/policy against. It shares nothing with
 * it: one question at a time, by trying everything, over JavaScript's regular expressions instead of RE2.
 *
 * It is right only for patterns that both engines read alike: literals, escaped punctuation, `.`, `^`, `$`, groups,
 * alternations, plain classes, `\d`, `\w`, quantifiers of up to 1000; and for texts of one line in ASCII.
 * `arbitraries.ts` makes such patterns; what the engines read differently is for `patterns.property.test.ts`.
 */

/** What the rules say about one question. */
export interface Decision {
  readonly allowed: boolean;
  /** Whether the key is registered and admits to the login and the device. */
  readonly admitted: boolean;
  /** The rule that decides about the login, the address and the device, whatever the key; null when none matches. */
  readonly rule: AccessRule | null;
}

/** What of a rule does not fit an attempt, in no order. */
export type Misfit = "inactive" | "login" | "address" | "device";

/** What JavaScript takes and RE2 refuses: looking around, back-references, and repeating more than 1000 times. */
const NOT_IN_RE2 = /\(\?<?[=!]|\\[1-9]|\{(?:\d*,)?(?:\d{5,}|[2-9]\d{3}|1(?!000)\d{3})/;

// Random patterns such as (.*.*)+ would keep the engine busy for minutes; with this it begins anew in linear time.
v8.setFlagsFromString("--enable-experimental-regexp-engine-on-excessive-backtracks");

const compiled = new Map<string, RegExp | null>();

/** null for a pattern that does not compile. */
function regExpOf(pattern: string): RegExp | null {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  let made: RegExp | null = null;
  try {
    if (!NOT_IN_RE2.test(pattern)) made = new RegExp(pattern);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  compiled.set(pattern, made);
  return made;
}

/** Whether the pattern compiles, as the oracle reads it. */
export const compiles = (pattern: string): boolean => regExpOf(pattern) !== null;

/** `broken` is the answer for a pattern that does not compile: what is safe where it stands. */
function found(pattern: string, text: string, broken: boolean): boolean {
  if (pattern === "") return true;
  return regExpOf(pattern)?.test(text) ?? broken;
}

function filterFits(filter: DeviceFilter, device: AccessDevice, broken: boolean): boolean {
  if (filter.hostname !== undefined && filter.hostname !== "") {
    return found(filter.hostname, device.name, broken);
  }
  if (filter.tags === undefined || filter.tags.length === 0) return true;
  for (const wanted of filter.tags) {
    for (const tag of device.tags) if (tag === wanted) return true;
  }
  return false;
}

/** A broken pattern admits nobody. */
export const admits = (key: AccessKey, device: AccessDevice, login: string): boolean =>
  found(key.username, login, false) && filterFits(key.filter, device, false);

/** What keeps a rule from matching; nothing when it matches. A broken pattern of a denying rule denies all. */
export function misfits(rule: AccessRule, device: AccessDevice, login: string, address: string): Misfit[] {
  const broken = rule.action === "deny";
  const all: Misfit[] = [];
  if (!rule.active) all.push("inactive");
  if (!found(rule.username, login, broken)) all.push("login");
  if (!found(rule.sourceIp, address, broken)) all.push("address");
  if (!filterFits(rule.filter, device, broken)) all.push("device");
  return all;
}

/** The rules as they are asked: of the higher priority first, of equals the one made later. */
export function byStrength(rules: readonly AccessRule[]): AccessRule[] {
  const left = [...rules];
  const sorted: AccessRule[] = [];
  while (left.length > 0) {
    let best = 0;
    for (let at = 1; at < left.length; at++) {
      if ((left[at] as AccessRule).priority >= (left[best] as AccessRule).priority) best = at;
    }
    sorted.push(...left.splice(best, 1));
  }
  return sorted;
}

/** Old code's way: in ascending order, the last that matches wins. */
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

/** The decision. Throws when the policy has no such device: then there is nothing to decide. */
export function decide(policy: AccessPolicy, question: AccessQuestion): Decision {
  const device = policy.devices.find(({ uid }) => uid === question.uid);
  if (device === undefined) throw new Error(`no device ${question.uid}`);
  const key = policy.keys.find(({ fingerprint }) => fingerprint === question.fingerprint);
  const admitted = key !== undefined && admits(key, device, question.login);
  const rule = decidingRule(policy.rules, device, question.login, question.address);
  return { allowed: admitted && rule?.action !== "deny", admitted, rule };
}
