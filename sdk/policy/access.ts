import { TypedFastBitSet } from "typedfastbitset";
import {
  type AccessDevice,
  type AccessKey,
  type AccessRule,
  type DeviceFilter,
  type EvaluatedLogins,
  type NamespacePolicy,
  strongestFirst,
} from "./decisions.ts";
import { type Pattern, patternFound, patternOf } from "./pattern.ts";

/**
 * A group of devices on which the same firewall rule decides logins with one login name from one address, or on which
 * no rule matches these logins.
 */
export interface Share {
  /** The rule that decides the login; null if no rule matches, so that the login is allowed. */
  readonly rule: AccessRule | null;
  readonly devices: DeviceSet;
}

/** The firewall's decisions about logins with one login name from one address, for all devices. */
export interface Verdict {
  /**
   * The devices, grouped by the rule that decides, strongest rule first. The last group contains the devices on which
   * no rule matches.
   */
  readonly shares: readonly Share[];
  /** The devices on which the logins are allowed. */
  readonly open: DeviceSet;
}

/**
 * The decisions of a policy about all evaluated login names and addresses, as sets of devices. The decisions are the
 * same as those of `keyAdmits` and `firewallDecides`, which decide one login at a time.
 */
export class Access {
  readonly policy: NamespacePolicy;
  readonly evaluated: EvaluatedLogins;
  /** Uids of the devices. A {@link DeviceSet} contains indexes of this list. */
  readonly uids: readonly string[];
  /** The active rules, strongest first. A {@link RuleSet} contains indexes of this list. */
  readonly rules: readonly AccessRule[];
  readonly #sets: DeviceSets;
  readonly #byLogin: RuleSets;
  readonly #byAddress: RuleSets;
  readonly #byBoth = new Map<RuleSet, Map<RuleSet, Verdict>>();
  readonly #verdicts = new Map<string, Verdict>();

  /**
   * Prepares the decisions of a policy about the evaluated login names and addresses.
   * @param uids uids of devices; default: the devices of the policy. To compare two policies, pass the same list for
   * both
   */
  constructor(
    policy: NamespacePolicy,
    evaluated: EvaluatedLogins,
    uids: readonly string[] = policy.devices.map(({ uid }) => uid),
  ) {
    this.policy = policy;
    this.evaluated = evaluated;
    this.uids = uids;
    this.#sets = new DeviceSets(policy.devices, new Map(uids.map((uid, place) => [uid, place])));
    this.rules = strongestFirst(policy.rules.filter(({ active }) => active));
    this.#byLogin = new RuleSets(this.rules, ({ username }) => username);
    this.#byAddress = new RuleSets(this.rules, ({ sourceIp }) => sourceIp);
  }

  /**
   * Returns the devices that a filter matches.
   * @param broken whether a pattern that does not compile matches every device (true) or none (false)
   */
  devicesOf(filter: DeviceFilter, broken: boolean): DeviceSet {
    return this.#sets.of(filter, broken);
  }

  /**
   * Returns the devices on which the key admits a login name, regardless of the firewall. Returns undefined if the key
   * does not admit the login name.
   */
  admitted(key: AccessKey, login: string): DeviceSet | undefined {
    if (!patternFound(key.username, login, false)) return undefined;
    return this.#sets.of(key.filter, false);
  }

  /**
   * Returns the rules whose pattern matches a login name. For login names that the same rules match, it returns the
   * same object.
   */
  rulesForLogin(login: string): RuleSet {
    return this.#byLogin.of(login);
  }

  /**
   * Returns the rules whose pattern matches an address. For addresses that the same rules match, it returns the same
   * object.
   */
  rulesForAddress(address: string): RuleSet {
    return this.#byAddress.of(address);
  }

  /**
   * Returns the firewall's decisions about a login name from an address. For logins that the same rules match, it
   * returns the same object.
   */
  verdict(login: string, address: string): Verdict {
    const named = this.rulesForLogin(login);
    const placed = this.rulesForAddress(address);
    const known = this.#byBoth.get(named)?.get(placed);
    if (known) return known;
    const matching = named.new_intersection(placed);
    const name = matching.toString();
    const verdict = this.#verdicts.get(name) ?? this.#judge(matching);
    this.#verdicts.set(name, verdict);
    const verdicts = this.#byBoth.get(named) ?? new Map<RuleSet, Verdict>();
    this.#byBoth.set(named, verdicts.set(placed, verdict));
    return verdict;
  }

  #judge(matching: RuleSet): Verdict {
    const left = this.#sets.all.clone();
    const open = this.#sets.all.clone();
    const shares: Share[] = [];
    for (const [place, rule] of this.rules.entries()) {
      if (!matching.has(place)) continue;
      const devices = this.#sets.of(rule.filter, rule.action === "deny").new_intersection(left);
      if (devices.isEmpty()) continue;
      shares.push({ rule, devices });
      left.difference(devices);
      if (rule.action === "deny") open.difference(devices);
    }
    if (!left.isEmpty()) shares.push({ rule: null, devices: left });
    return { shares, open };
  }

  /** Returns the devices that at least one key can reach with at least one evaluated login name and address. */
  reached(): DeviceSet {
    const reached: DeviceSet = new TypedFastBitSet();
    for (const login of this.evaluated.logins) {
      const admitted = unionOf(this.policy.keys.map((key) => this.admitted(key, login)));
      const open = unionOf(this.evaluated.addresses.map((address) => this.verdict(login, address).open));
      reached.union(admitted.new_intersection(open));
    }
    return reached;
  }

  /** Returns the uids of a set of devices. */
  uidsOf(devices: DeviceSet): string[] {
    const uids: string[] = [];
    devices.forEach((place) => {
      uids.push(this.uids[place] ?? "");
    });
    return uids;
  }
}

function unionOf(sets: readonly (DeviceSet | undefined)[]): DeviceSet {
  const union = new TypedFastBitSet();
  for (const set of new Set(sets)) if (set) union.union(set);
  return union;
}

/** A set of devices. Each device is represented by its index in a list of uids. */
export type DeviceSet = TypedFastBitSet;

class DeviceSets {
  readonly all: DeviceSet = new TypedFastBitSet();
  readonly #names: NamedDevices;
  /**
   * Device indexes by tag. The values are arrays, because a {@link DeviceSet} for each tag would use too much memory in
   * a fleet in which each device has its own tag.
   */
  readonly #byTag = new Map<string, number[]>();
  readonly #byTags = new Map<string, DeviceSet>();
  readonly #byPattern = new Map<string, DeviceSet | undefined>();

  /**
   * Indexes devices by name and by tag.
   * @param placeOf a device's index in the list of uids
   */
  constructor(devices: readonly AccessDevice[], placeOf: ReadonlyMap<string, number>) {
    const names: [name: string, place: number][] = [];
    for (const { uid, name, tags } of devices) {
      const place = placeOf.get(uid);
      if (place === undefined) throw new Error(`the device ${uid} is not in the list of uids`);
      this.all.add(place);
      names.push([name, place]);
      for (const tag of tags) {
        const tagged = this.#byTag.get(tag);
        if (tagged) tagged.push(place);
        else this.#byTag.set(tag, [place]);
      }
    }
    this.#names = new NamedDevices(names);
  }

  /**
   * Returns the devices that a filter matches.
   * @param broken whether a pattern that does not compile matches every device (true) or none (false)
   */
  of({ hostname, tags }: DeviceFilter, broken: boolean): DeviceSet {
    if (hostname) return this.#named(hostname) ?? (broken ? this.all : new TypedFastBitSet());
    if (!tags || tags.length === 0) return this.all;
    const name = JSON.stringify(tags);
    const known = this.#byTags.get(name);
    if (known) return known;
    const union = new TypedFastBitSet();
    for (const tag of tags) for (const place of this.#byTag.get(tag) ?? []) union.add(place);
    this.#byTags.set(name, union);
    return union;
  }

  #named(pattern: string): DeviceSet | undefined {
    if (!this.#byPattern.has(pattern)) {
      const compiled = patternOf(pattern);
      this.#byPattern.set(pattern, compiled && new TypedFastBitSet(this.#names.matching(compiled)));
    }
    return this.#byPattern.get(pattern);
  }
}

type Named = readonly [name: string, place: number];

/** An index of devices by name. It tests a pattern with a known beginning only on the names with that beginning. */
class NamedDevices {
  /**
   * The devices in their order in memory. An iteration over this list is ten times faster than over the sorted list.
   */
  readonly #devices: readonly Named[];
  readonly #sorted: readonly Named[];

  constructor(devices: readonly Named[]) {
    this.#devices = devices;
    this.#sorted = devices.toSorted(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  }

  *matching({ begins, test }: Pattern): Generator<number> {
    if (!begins || begins.includes("")) {
      for (const [name, place] of this.#devices) if (test(name)) yield place;
      return;
    }
    for (const begin of begins) {
      for (let index = this.#firstFrom(begin); index < this.#sorted.length; index += 1) {
        const [name, place] = this.#sorted[index] as Named;
        if (!name.startsWith(begin)) break;
        if (test(name)) yield place;
      }
    }
  }

  #firstFrom(text: string): number {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle]?.[0] ?? "") < text) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** A set of rules. Each rule is represented by its index in {@link Access.rules}. */
export type RuleSet = TypedFastBitSet;

/** Finds the rules whose pattern matches a text, and caches the result for each text. */
class RuleSets {
  /**
   * Each different pattern, compiled, with all rules that contain it. The `patternOf` cache cannot hold all patterns of
   * a large policy, so this class keeps them.
   */
  readonly #patterns: readonly { readonly test: Pattern["test"]; readonly rules: RuleSet }[];
  readonly #byText = new Map<string, RuleSet>();
  readonly #byRules = new Map<string, RuleSet>();

  constructor(rules: readonly AccessRule[], textOf: (rule: AccessRule) => string) {
    const groups = Map.groupBy(rules.keys(), (place) => {
      const rule = rules[place] as AccessRule;
      return JSON.stringify([textOf(rule), rule.action]);
    });
    this.#patterns = [...groups.values()].map((places) => {
      const rule = rules[places[0] ?? 0] as AccessRule;
      // A pattern that does not compile matches every text in a rule that denies, and no text in a rule that allows.
      const test = patternOf(textOf(rule))?.test ?? (() => rule.action === "deny");
      return { test, rules: new TypedFastBitSet(places) };
    });
  }

  /**
   * Returns the rules whose pattern matches a text. For texts that the same rules match, it returns the same object.
   */
  of(text: string): RuleSet {
    const known = this.#byText.get(text);
    if (known) return known;
    const found = new TypedFastBitSet();
    for (const { test, rules } of this.#patterns) if (test(text)) found.union(rules);
    const name = found.toString();
    const same = this.#byRules.get(name) ?? found;
    this.#byRules.set(name, same);
    this.#byText.set(text, same);
    return same;
  }
}
