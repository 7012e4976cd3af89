import type { Access, DeviceSet } from "./access.ts";
import type { AccessKey, AccessRule, EvaluatedLogins } from "./decisions.ts";

/** The logins that one rule allows for one public key. */
export interface Grant {
  readonly key: AccessKey;
  readonly login: string;
  /** The evaluated addresses from which the logins are allowed. */
  readonly addresses: readonly string[];
  /** The rule that allows the logins; null if no rule matches. */
  readonly rule: AccessRule | null;
  /** Uids of the devices, in the order of {@link Access.uids}. */
  readonly devices: readonly string[];
}

/**
 * Returns all logins that a policy allows for the evaluated login names and addresses, grouped by key. Addresses with
 * the same permissions are in one grant.
 * @param keys default: all keys of the policy
 */
export function* grantsOf(access: Access, keys = access.policy.keys): Generator<Grant> {
  const allowed = access.evaluated.logins.map((login) => [login, allowedTo(access, login)] as const);
  for (const key of keys) {
    for (const [login, shares] of allowed) {
      const admitted = access.admitted(key, login);
      if (!admitted || admitted.isEmpty()) continue;
      const groups = new Groups<AccessRule | null>();
      for (const { label: rule, devices, addresses } of shares) {
        if (admitted.intersects(devices)) groups.add(rule, admitted.new_intersection(devices), addresses);
      }
      for (const { label: rule, devices, addresses } of groups.in(access.evaluated)) {
        yield { key, login, addresses, rule, devices: access.uidsOf(devices) };
      }
    }
  }
}

function allowedTo(access: Access, login: string): Group<AccessRule | null>[] {
  const groups = new Groups<AccessRule | null>();
  const alike = Map.groupBy(access.evaluated.addresses, (address) => access.verdict(login, address));
  for (const [{ shares }, addresses] of alike) {
    for (const { rule, devices } of shares) {
      if (rule?.action !== "deny") groups.add(rule, devices, addresses);
    }
  }
  return [...groups.in(access.evaluated)];
}

/** The devices that a key gains or loses for a login name. */
export interface AccessChange {
  /** The public key after the change; the previous key if the change deletes it. */
  readonly key: AccessKey;
  readonly login: string;
  readonly addresses: readonly string[];
  readonly change: "gained" | "lost";
  /** Uids of the devices, in the order of {@link Access.uids}. */
  readonly devices: readonly string[];
}

/**
 * Yields the effect of a policy change: the logins that only one of the two policies allows.
 * @param before the access before the change, with the same evaluated logins and the same list of uids as `after`
 */
export function* accessChanges(before: Access, after: Access): Generator<AccessChange> {
  const old = new Map(before.policy.keys.map((key) => [key.fingerprint, key]));
  const now = new Map(after.policy.keys.map((key) => [key.fingerprint, key]));
  const alike = after.evaluated.logins.map((login) => [login, alikeToBoth(before, after, login)] as const);
  for (const fingerprint of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(fingerprint), now.get(fingerprint)];
    const key = is ?? was;
    if (!key) continue;
    for (const [login, places] of alike) {
      const admittedBefore = was && before.admitted(was, login);
      const admittedAfter = is && after.admitted(is, login);
      if (!admittedBefore && !admittedAfter) continue;
      const groups = new Groups<"gained" | "lost">();
      const sameDevices = admittedAfter && admittedBefore?.equals(admittedAfter);
      for (const { openBefore, openAfter, changed, addresses } of places) {
        if (sameDevices && !changed.intersects(admittedAfter)) continue;
        const reachBefore = admittedBefore?.new_intersection(openBefore);
        const reachAfter = admittedAfter?.new_intersection(openAfter);
        groups.add("gained", without(reachAfter, reachBefore), addresses);
        groups.add("lost", without(reachBefore, reachAfter), addresses);
      }
      for (const { label: change, devices, addresses } of groups.in(after.evaluated)) {
        yield { key, login, addresses, change, devices: after.uidsOf(devices) };
      }
    }
  }
}

/**
 * A group of addresses that the policy change affects equally: for one login name, the firewall's decisions are the
 * same for all of them before the change, and the same for all of them after the change.
 */
interface AlikeAddresses {
  readonly openBefore: DeviceSet;
  readonly openAfter: DeviceSet;
  /** Devices that are in only one of the sets `openBefore` and `openAfter`. */
  readonly changed: DeviceSet;
  readonly addresses: readonly string[];
}

function alikeToBoth(before: Access, after: Access, login: string): AlikeAddresses[] {
  const places = new Map(after.evaluated.addresses.map((address, place) => [address, place]));
  const firstOf = ({ addresses }: AlikeAddresses) => places.get(addresses[0] ?? "") ?? 0;
  const pairs = [
    ...Map.groupBy(after.evaluated.addresses, (address) => before.verdict(login, address).open),
  ].flatMap(([openBefore, some]) => {
    const alike = Map.groupBy(some, (address) => after.verdict(login, address).open);
    return [...alike].map(([openAfter, addresses]) => ({
      openBefore,
      openAfter,
      changed: openBefore.new_change(openAfter),
      addresses,
    }));
  });
  return pairs.sort((left, right) => firstOf(left) - firstOf(right));
}

const without = (from: DeviceSet | undefined, some: DeviceSet | undefined): DeviceSet | undefined =>
  from && some ? from.new_difference(some) : from;

interface Group<Label> {
  readonly label: Label;
  readonly devices: DeviceSet;
  readonly addresses: readonly string[];
}

interface OpenGroup<Label> extends Omit<Group<Label>, "addresses"> {
  readonly parts: (readonly string[])[];
}

/** Groups addresses by their devices and label. */
class Groups<Label> {
  readonly #all: OpenGroup<Label>[] = [];
  readonly #byLabel = new Map<Label, OpenGroup<Label>[]>();

  add(label: Label, devices: DeviceSet | undefined, addresses: readonly string[]): void {
    if (!devices || devices.isEmpty()) return;
    const alike = this.#byLabel.get(label) ?? [];
    const same = alike.find((group) => group.devices.equals(devices));
    if (same) {
      same.parts.push(addresses);
      return;
    }
    const group = { label, devices, parts: [addresses] };
    this.#all.push(group);
    alike.push(group);
    this.#byLabel.set(label, alike);
  }

  /** Returns the groups. The addresses of a group are in the order of the evaluated addresses. */
  *in(evaluated: EvaluatedLogins): Generator<Group<Label>> {
    for (const { label, devices, parts } of this.#all) {
      yield { label, devices, addresses: inOrder(parts, evaluated.addresses) };
    }
  }
}

function inOrder(parts: readonly (readonly string[])[], all: readonly string[]): readonly string[] {
  if (parts.length === 1) return parts[0] ?? [];
  const wanted = new Set(parts.flat());
  return all.filter((address) => wanted.has(address));
}
