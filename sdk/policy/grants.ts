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
  const verdicts = logins.map((login) => {
    return [login, Map.groupBy(addresses, (address) => access.verdict(login, address))] as const;
  });
  for (const key of keys) {
    for (const [login, alike] of verdicts) {
      const admitted = access.admitted(key, login);
      if (!admitted || admitted.isEmpty()) continue;
      const groups = new Groups<AccessRule | null>();
      for (const [{ shares }, from] of alike) {
        for (const { rule, devices } of shares) {
          if (rule?.action === "deny" || !admitted.intersects(devices)) continue;
          groups.add(rule, admitted.new_intersection(devices), from);
        }
      }
      for (const { label: rule, devices, from } of groups.all) {
        yield { key, login, addresses: inOrder(from, addresses), rule, devices: access.uidsOf(devices) };
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
  const alike = logins.map((login) => [login, alikeToBoth(before, after, login)] as const);
  for (const fingerprint of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(fingerprint), now.get(fingerprint)];
    const key = is ?? was;
    if (!key) continue;
    for (const [login, places] of alike) {
      const admittedBefore = was && before.admitted(was, login);
      const admittedAfter = is && after.admitted(is, login);
      if (!admittedBefore && !admittedAfter) continue;
      const groups = new Groups<"gained" | "lost">();
      for (const { openBefore, openAfter, from } of places) {
        const reachBefore = admittedBefore?.new_intersection(openBefore);
        const reachAfter = admittedAfter?.new_intersection(openAfter);
        groups.add("gained", without(reachAfter, reachBefore), from);
        groups.add("lost", without(reachBefore, reachAfter), from);
      }
      for (const { label: change, devices, from } of groups.all) {
        yield { key, login, addresses: inOrder(from, addresses), change, devices: after.uidsOf(devices) };
      }
    }
  }
}

/** Addresses from which two firewalls let logins of one name through to the same devices. */
interface AlikeAddresses {
  readonly openBefore: DeviceSet;
  readonly openAfter: DeviceSet;
  readonly from: readonly string[];
}

function alikeToBoth(before: Access, after: Access, login: string): AlikeAddresses[] {
  const { addresses } = after.domain;
  const places = new Map(addresses.map((address, place) => [address, place]));
  const firstOf = ({ from }: AlikeAddresses) => places.get(from[0] ?? "") ?? 0;
  const pairs = [...Map.groupBy(addresses, (address) => before.verdict(login, address).open)].flatMap(
    ([openBefore, some]) => {
      const alike = Map.groupBy(some, (address) => after.verdict(login, address).open);
      return [...alike].map(([openAfter, from]) => ({ openBefore, openAfter, from }));
    },
  );
  return pairs.sort((left, right) => firstOf(left) - firstOf(right));
}

const without = (from: DeviceSet | undefined, some: DeviceSet | undefined): DeviceSet | undefined =>
  from && some ? from.new_difference(some) : from;

interface Group<Label> {
  readonly label: Label;
  readonly devices: DeviceSet;
  /** Addresses, alike ones together. */
  readonly from: (readonly string[])[];
}

/** Addresses that have the same devices under one label belong together. */
class Groups<Label> {
  readonly all: Group<Label>[] = [];

  add(label: Label, devices: DeviceSet | undefined, from: readonly string[]): void {
    if (!devices || devices.isEmpty()) return;
    const same = this.all.find((group) => group.label === label && group.devices.equals(devices));
    if (same) same.from.push(from);
    else this.all.push({ label, devices, from: [from] });
  }
}

/** The addresses of all parts, in the order in which the domain has them. */
function inOrder(parts: readonly (readonly string[])[], domain: readonly string[]): readonly string[] {
  if (parts.length === 1) return parts[0] ?? [];
  const wanted = new Set(parts.flat());
  return domain.filter((address) => wanted.has(address));
}
