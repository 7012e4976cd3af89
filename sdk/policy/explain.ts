import type { AccessDevice, AccessKey, AccessPolicy, AccessQuestion, AccessRule } from "./facts.ts";
import { firewallDecides, strongestFirst } from "./firewallDecides.ts";
import { filterMatches } from "./keyAdmits.ts";
import { patternFound } from "./pattern.ts";

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
