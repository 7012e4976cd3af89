import { TypedFastBitSet } from "typedfastbitset";
import { type DeviceSet, DeviceSets } from "./deviceSets.ts";
import type { AccessDomain, AccessKey, AccessPolicy, AccessRule } from "./facts.ts";
import { strongestFirst } from "./firewallDecides.ts";
import type { DeviceFilter } from "./keyAdmits.ts";
import { patternFound } from "./pattern.ts";
import { type RuleSet, RuleSets } from "./ruleSets.ts";

/** The devices on which one rule decides about logins of one name from one address, or on which no rule does. */
export interface Share {
  /** Null where no rule matches, so that the login is allowed. */
  readonly rule: AccessRule | null;
  readonly devices: DeviceSet;
}

/** What the firewall says to logins of one name from one address. */
export interface Verdict {
  /** The strongest rule first; last the devices on which no rule matches. */
  readonly shares: readonly Share[];
  /** The devices on which the logins are allowed. */
  readonly open: DeviceSet;
}

/**
 * All decisions of a policy about the login names and addresses of a domain, each as a set of devices. They are those
 * of `keyAdmits` and `firewallDecides`, which decide about one login at a time.
 */
export class Access {
  readonly policy: AccessPolicy;
  readonly domain: AccessDomain;
  /** Uids of devices; a {@link DeviceSet} holds places in this list. */
  readonly uids: readonly string[];
  /** The active rules, strongest first; a {@link RuleSet} holds places in this list. */
  readonly rules: readonly AccessRule[];
  readonly #sets: DeviceSets;
  readonly #byLogin: RuleSets;
  readonly #byAddress: RuleSets;
  readonly #byBoth = new Map<RuleSet, Map<RuleSet, Verdict>>();
  readonly #verdicts = new Map<string, Verdict>();

  /** @param uids by default those of the policy's devices; two policies with the same ones can be compared */
  constructor(
    policy: AccessPolicy,
    domain: AccessDomain,
    uids: readonly string[] = policy.devices.map(({ uid }) => uid),
  ) {
    this.policy = policy;
    this.domain = domain;
    this.uids = uids;
    this.#sets = new DeviceSets(policy.devices, new Map(uids.map((uid, place) => [uid, place])));
    this.rules = strongestFirst(policy.rules.filter(({ active }) => active));
    this.#byLogin = new RuleSets(this.rules, ({ username }) => username);
    this.#byAddress = new RuleSets(this.rules, ({ sourceIp }) => sourceIp);
  }

  /**
   * The devices that a filter is for.
   * @param broken whether a pattern that does not compile is for every device (true), or for none
   */
  devicesOf(filter: DeviceFilter, broken: boolean): DeviceSet {
    return this.#sets.of(filter, broken);
  }

  /** The devices on which the key admits a login name, whatever the firewall says; undefined for none. */
  admitted(key: AccessKey, login: string): DeviceSet | undefined {
    if (!patternFound(key.username, login, false)) return undefined;
    return this.#sets.of(key.filter, false);
  }

  /** The rules whose pattern is found in a login name. Names in which the same ones are found get the same object. */
  rulesForLogin(login: string): RuleSet {
    return this.#byLogin.of(login);
  }

  /** The rules whose pattern is found in an address, as {@link rulesForLogin}. */
  rulesForAddress(address: string): RuleSet {
    return this.#byAddress.of(address);
  }

  /** What the firewall says. Logins that the same rules match get the same object. */
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

  /** The devices that some key reaches, by some login name from some address of the domain. */
  reached(): DeviceSet {
    const reached: DeviceSet = new TypedFastBitSet();
    for (const login of this.domain.logins) {
      const admitted = unionOf(this.policy.keys.map((key) => this.admitted(key, login)));
      const open = unionOf(this.domain.addresses.map((address) => this.verdict(login, address).open));
      reached.union(admitted.new_intersection(open));
    }
    return reached;
  }

  /** Uids of a set of devices. */
  uidsOf(devices: DeviceSet): string[] {
    const uids: string[] = [];
    devices.forEach((place) => {
      uids.push(this.uids[place] ?? "");
    });
    return uids;
  }
}

/** The union of sets, many of which are the same object. */
function unionOf(sets: readonly (DeviceSet | undefined)[]): DeviceSet {
  const union = new TypedFastBitSet();
  for (const set of new Set(sets)) if (set) union.union(set);
  return union;
}
