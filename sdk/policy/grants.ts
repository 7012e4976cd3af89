import type { Access } from "./access.ts";
import type { DeviceSet } from "./deviceSets.ts";
import type { AccessKey, AccessRule } from "./facts.ts";

/** What one key may do, by one rule. */
export interface Grant {
  readonly key: AccessKey;
  readonly login: string;
  /** Those of the domain from which it is so. */
  readonly addresses: readonly string[];
  /** The rule that allows it; null where none matches. */
  readonly rule: AccessRule | null;
  /** Uids, in the order of the access's list. */
  readonly devices: readonly string[];
}

/** Everything that a policy allows over its domain, key by key; addresses that make no difference are in one grant. */
export function* grantsOf(access: Access, keys = access.policy.keys): Generator<Grant> {
  const { logins, addresses } = access.domain;
  for (const key of keys) {
    for (const login of logins) {
      const admitted = access.admitted(key, login);
      if (!admitted || admitted.isEmpty()) continue;
      const groups = new Groups<AccessRule | null>();
      for (const address of addresses) {
        for (const { rule, devices } of access.verdict(login, address).shares) {
          if (rule?.action !== "deny") groups.add(rule, admitted.new_intersection(devices), address);
        }
      }
      for (const { label: rule, devices, addresses } of groups.all) {
        yield { key, login, addresses, rule, devices: access.uidsOf(devices) };
      }
    }
  }
}

/** Which devices a key gains or loses for a login name. */
export interface AccessChange {
  /** As it is after the change; of one that is gone, as it was. */
  readonly key: AccessKey;
  readonly login: string;
  readonly addresses: readonly string[];
  readonly change: "gained" | "lost";
  /** Uids, in the order of the accesses' list. */
  readonly devices: readonly string[];
}

/**
 * What a change of the policy means: every login that only one of the two allows.
 * @param before and `after` must have the same domain and list of uids
 */
export function* accessChanges(before: Access, after: Access): Generator<AccessChange> {
  const old = new Map(before.policy.keys.map((key) => [key.fingerprint, key]));
  const now = new Map(after.policy.keys.map((key) => [key.fingerprint, key]));
  const { logins, addresses } = after.domain;
  for (const fingerprint of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(fingerprint), now.get(fingerprint)];
    const key = is ?? was;
    if (!key) continue;
    for (const login of logins) {
      const groups = new Groups<"gained" | "lost">();
      const [admittedBefore, admittedAfter] = [
        was && before.admitted(was, login),
        is && after.admitted(is, login),
      ];
      if (!admittedBefore && !admittedAfter) continue;
      for (const address of addresses) {
        const reachBefore = admittedBefore?.new_intersection(before.verdict(login, address).open);
        const reachAfter = admittedAfter?.new_intersection(after.verdict(login, address).open);
        groups.add("gained", without(reachAfter, reachBefore), address);
        groups.add("lost", without(reachBefore, reachAfter), address);
      }
      for (const { label: change, devices, addresses } of groups.all) {
        yield { key, login, addresses, change, devices: after.uidsOf(devices) };
      }
    }
  }
}

const without = (from: DeviceSet | undefined, some: DeviceSet | undefined): DeviceSet | undefined =>
  from && some ? from.new_difference(some) : from;

interface Group<Label> {
  readonly label: Label;
  readonly devices: DeviceSet;
  readonly addresses: string[];
}

/** Addresses that have the same devices under one label belong together. */
class Groups<Label> {
  readonly all: Group<Label>[] = [];

  add(label: Label, devices: DeviceSet | undefined, address: string): void {
    if (!devices || devices.isEmpty()) return;
    const same = this.all.find((group) => group.label === label && group.devices.equals(devices));
    if (same) same.addresses.push(address);
    else this.all.push({ label, devices, addresses: [address] });
  }
}
