import { TypedFastBitSet } from "typedfastbitset";
import {
  type AccessDevice,
  type AccessKey,
  type AccessRule,
  type DeviceFilter,
  type EvaluatedLogins,
  isInForce,
  strongestFirst,
} from "./decisions.ts";
import { type AccessMember, earlier, hasExpired, type KeyLapse, keyLapse, latest } from "./expiry.ts";
import {
  type AccessPolicy,
  hasLogin,
  inPolicyOrder,
  isLive,
  isSubject,
  keyStateOf,
  type Outcome,
  outcomeFor,
  type Principal,
  sourceTest,
} from "./identity.ts";
import { type AccessSubject, isPrincipal, type NamespacePolicy, subjectsOf } from "./namespacePolicy.ts";
import { type Pattern, patternFound, patternOf } from "./pattern.ts";

/** The reason for a decision. Equal reasons of one {@link Access} are the same object. */
export interface Reason {
  readonly outcome: "allow" | "reauthentication" | "deny";
  /** The firewall rule that decides the login. Null if no rule matches, so that the login is allowed. */
  readonly rule: AccessRule | null;
  /** The access policy that decides the login in identity mode: the first one of those that apply. */
  readonly policy: AccessPolicy | null;
  /** The time from which other rules deny the login, because the rules that allow it have expired. */
  readonly until?: string | undefined;
}

/** A group of devices on which logins with one login name from one address have the same reason. */
export interface Share {
  readonly reason: Reason;
  readonly devices: DeviceSet;
}

/** The decisions about logins with one login name from one address, for all devices. */
export interface Verdict {
  /**
   * The devices, grouped by the reason. Firewall: strongest rule first; the last group contains the devices on which no
   * rule matches. Access policies: those that deny first; devices to which no policy applies are in no group.
   */
  readonly shares: readonly Share[];
  /** The devices on which the logins are allowed, with or without a re-authentication. */
  readonly open: DeviceSet;
  /** The devices on which the logins are allowed after a re-authentication. */
  readonly held: DeviceSet;
  /** The shares whose logins an expiry of a rule ends. */
  readonly endings: readonly Share[];
}

/**
 * The decisions of a policy about all evaluated login names and addresses, as sets of devices. The decisions are the
 * same as those of `explain` and `explainIdentity`, which decide one login at a time. In identity mode, every
 * re-authentication counts as outdated.
 */
export class Access {
  readonly policy: NamespacePolicy;
  readonly evaluated: EvaluatedLogins;
  /** Uids of the devices. A {@link DeviceSet} contains indexes of this list. */
  readonly uids: readonly string[];
  /** The public keys that may admit logins: their type is not refused, and they have not expired or lost their owner. */
  readonly keys: readonly AccessKey[];
  /** The rules in force, strongest first. A {@link RuleSet} contains indexes of this list. */
  readonly rules: readonly AccessRule[];
  readonly #sets: DeviceSets;
  readonly #byLogin: RuleSets;
  readonly #byAddress: RuleSets;
  readonly #byBoth = new Map<RuleSet, Map<RuleSet, Verdict>>();
  readonly #verdicts = new Map<string, Verdict>();
  readonly #reasons = new Map<AccessRule | null, Reason[]>();
  readonly #identity: IdentityDecisions | undefined;
  /** The time of the logins. */
  readonly time: Date;
  #members: ReadonlyMap<string, AccessMember> | undefined;

  /**
   * Prepares the decisions of a policy about the evaluated login names and addresses.
   * @param uids uids of devices; default: the devices of the policy. To compare two policies, pass the same list for
   * both
   * @param at the time of the logins, at which keys, rules and memberships may have expired
   */
  constructor(
    policy: NamespacePolicy,
    evaluated: EvaluatedLogins,
    uids: readonly string[] = policy.devices.map(({ uid }) => uid),
    at: Date = new Date(),
  ) {
    this.policy = policy;
    this.time = at;
    this.evaluated = evaluated;
    this.uids = uids;
    this.#sets = new DeviceSets(policy.devices, new Map(uids.map((uid, place) => [uid, place])));
    this.keys = policy.keys.filter((key) => this.lapseOf(key) === undefined);
    this.rules = strongestFirst(policy.rules.filter((rule) => isInForce(rule, at)));
    this.#byLogin = new RuleSets(this.rules, ({ username }) => username);
    this.#byAddress = new RuleSets(this.rules, ({ sourceIp }) => sourceIp);
    this.#identity = policy.identity && new IdentityDecisions(policy.identity.policies, this.#sets);
  }

  /** The public keys, or the principals in identity mode. */
  get subjects(): readonly AccessSubject[] {
    return subjectsOf(this.policy);
  }

  /**
   * Returns an object that is the same for subjects with the same verdicts. All public keys have the same verdicts: the
   * firewall's.
   */
  groupOf(subject: AccessSubject | undefined): object {
    return subject && isPrincipal(subject) && this.#identity ? this.#identity.groupOf(subject) : this;
  }

  /**
   * Returns the outcome of a subject's login.
   * @param outcome the decision of the rules or policies
   */
  outcomeOf(outcome: Reason["outcome"], subject: AccessSubject): Outcome {
    return isPrincipal(subject) ? outcomeFor(outcome, subject, keyStateOf(subject, this.time)) : outcome;
  }

  /**
   * Returns the time from which a subject has no access, regardless of the rules: the end of the key or of its owner's
   * membership, or the end of the last SSH key of a principal. Undefined if no time is known.
   */
  endOf(subject: AccessSubject): string | undefined {
    if (!isPrincipal(subject)) return earlier(subject.expiresAt, this.#ownerOf(subject)?.expiresAt);
    const ends =
      subject.keys?.filter((key) => isLive(key, this.time)).map(({ expiresAt }) => expiresAt) ?? [];
    return ends.includes(null) ? undefined : latest(ends.filter((end) => end !== null));
  }

  #ownerOf({ owner }: AccessKey): AccessMember | undefined {
    if (owner === undefined) return undefined;
    this.#members ??= new Map(this.policy.members?.map((member) => [member.id, member]));
    return this.#members.get(owner);
  }

  /** Returns the reason why a key of the policy admits no login; undefined if it may admit logins. */
  lapseOf(key: AccessKey): KeyLapse | undefined {
    // Keys with an owner are evaluated as if their owners were members if the members are not known.
    if (this.policy.members === undefined)
      return keyLapse({ ...key, owner: undefined }, undefined, this.time);
    return keyLapse(key, this.#ownerOf(key), this.time);
  }

  /**
   * Returns the devices that a filter matches.
   * @param broken whether a pattern that does not compile matches every device (true) or none (false)
   */
  devicesOf(filter: DeviceFilter, broken: boolean): DeviceSet {
    return this.#sets.of(filter, broken);
  }

  /**
   * Returns the devices on which a key admits a login name, regardless of the firewall. Returns undefined if the key
   * does not admit the login name, has a refused type, has expired, or belongs to a user who is not a member. A principal
   * is admitted to every device, unless the principal has no SSH key and cannot confirm one.
   */
  admitted(subject: AccessSubject, login: string): DeviceSet | undefined {
    if (isPrincipal(subject)) return keyStateOf(subject, this.time) === "none" ? undefined : this.#sets.all;
    if (this.lapseOf(subject)) return undefined;
    if (!patternFound(subject.username, login, false)) return undefined;
    return this.#sets.of(subject.filter, false);
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
   * Returns the decisions about a login name from an address. For logins that the same rules match, it returns the same
   * object.
   * @param subject the principal, in identity mode; the decisions of the firewall are the same for all keys
   */
  verdict(login: string, address: string, subject?: AccessSubject): Verdict {
    if (this.#identity && subject && isPrincipal(subject)) {
      return this.#identity.verdict(subject, login, address);
    }
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
    const rules = this.rules.filter((_, place) => matching.has(place));
    for (const [rule, devices] of this.#decisions(rules, left, this.time)) {
      if (rule?.action === "deny") open.difference(devices);
      for (const [until, some] of this.#byEnd(rules, rule, devices))
        shares.push({ reason: this.#reasonOf(rule, until), devices: some });
    }
    const endings = shares.filter(({ reason }) => reason.until !== undefined);
    return { shares, open, held: NO_DEVICES, endings };
  }

  /** Removes the devices that each rule decides from `left`, and yields them; last, the devices that no rule decides. */
  *#decisions(
    rules: readonly AccessRule[],
    left: DeviceSet,
    at: Date,
  ): Generator<readonly [AccessRule | null, DeviceSet]> {
    for (const rule of rules) {
      if (hasExpired(rule, at)) continue;
      const devices = this.#sets.of(rule.filter, rule.action === "deny").new_intersection(left);
      if (devices.isEmpty()) continue;
      left.difference(devices);
      yield [rule, devices];
    }
    if (!left.isEmpty()) yield [null, left];
  }

  /** Groups the devices that a rule decides by the end of the logins. After the expiry of a rule, the weaker rules decide. */
  #byEnd(rules: readonly AccessRule[], rule: AccessRule | null, devices: DeviceSet) {
    const groups = new Map<string | undefined, DeviceSet>();
    const until = rule?.action === "allow" ? rule.expiresAt : undefined;
    if (until === undefined) return groups.set(undefined, devices);
    for (const [next, some] of this.#decisions(rules, devices.clone(), new Date(until))) {
      const ends = next?.action === "deny" ? new Map([[until, some]]) : this.#byEnd(rules, next, some);
      for (const [time, part] of ends) groups.set(time, unionOf([groups.get(time), part]));
    }
    return groups;
  }

  #reasonOf(rule: AccessRule | null, until: string | undefined): Reason {
    const reasons = this.#reasons.get(rule) ?? [];
    const known = reasons.find((reason) => reason.until === until);
    const reason = known ?? { rule, policy: null, outcome: rule?.action ?? "allow", until };
    if (!known) this.#reasons.set(rule, [...reasons, reason]);
    return reason;
  }

  /** Returns the devices that at least one subject can reach with at least one evaluated login name and address. */
  reached(): DeviceSet {
    const reached: DeviceSet = new TypedFastBitSet();
    const { logins, addresses } = this.evaluated;
    for (const [, alike] of Map.groupBy(this.subjects, (subject) => this.groupOf(subject))) {
      for (const login of logins) {
        const admitted = unionOf(alike.map((subject) => this.admitted(subject, login)));
        if (admitted.isEmpty()) continue;
        const open = unionOf(addresses.map((address) => this.verdict(login, address, alike[0]).open));
        reached.union(admitted.new_intersection(open));
      }
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

const NO_DEVICES: DeviceSet = new TypedFastBitSet();

/** Returns the devices that are in at least one of several sets. Skips undefined sets. */
export function unionOf(sets: readonly (DeviceSet | undefined)[]): DeviceSet {
  const union = new TypedFastBitSet();
  for (const set of new Set(sets)) if (set) union.union(set);
  return union;
}

/** An access policy, prepared for many decisions. */
interface PreparedPolicy {
  readonly policy: AccessPolicy;
  readonly hasSource: (address: string) => boolean;
  /** The reason for a login that this policy decides. */
  readonly reason: Reason;
  /** The reason for a login that this policy allows after a re-authentication. */
  readonly strict: Reason;
}

/** The decisions of access policies. Each policy is represented by its index in a sorted list. */
class IdentityDecisions {
  readonly #sets: DeviceSets;
  readonly #policies: readonly PreparedPolicy[];
  readonly #byKey = new Map<string, PolicySet>();
  readonly #byPolicies = new Map<string, PolicySet>();
  readonly #verdicts = new Map<string, Verdict>();

  constructor(policies: readonly AccessPolicy[], sets: DeviceSets) {
    this.#sets = sets;
    this.#policies = inPolicyOrder(policies).map((policy) => ({
      policy,
      hasSource: sourceTest(policy),
      reason: { outcome: policy.action, rule: null, policy },
      strict: { outcome: "reauthentication", rule: null, policy },
    }));
  }

  /** Returns the policies whose subject includes the principal: the same object for principals of the same policies. */
  groupOf(principal: Principal): PolicySet {
    const key = `subject ${principal.id} ${principal.role}`;
    return this.#select(key, ({ policy }) => isSubject(policy, principal));
  }

  verdict(principal: Principal, login: string, address: string): Verdict {
    const matching = this.groupOf(principal).clone();
    matching.intersection(this.#select(`login ${login}`, ({ policy }) => hasLogin(policy, login)));
    matching.intersection(this.#select(`address ${address}`, ({ hasSource }) => hasSource(address)));
    const name = matching.toString();
    const verdict = this.#verdicts.get(name) ?? this.#judge(matching);
    this.#verdicts.set(name, verdict);
    return verdict;
  }

  /** Returns the policies that pass a test, from the cache if the key is known. Equal sets are the same object. */
  #select(key: string, test: (policy: PreparedPolicy) => boolean): PolicySet {
    const known = this.#byKey.get(key);
    if (known) return known;
    const found = new TypedFastBitSet();
    for (const [place, policy] of this.#policies.entries()) if (test(policy)) found.add(place);
    const name = found.toString();
    const set = this.#byPolicies.get(name) ?? found;
    this.#byPolicies.set(name, set);
    this.#byKey.set(key, set);
    return set;
  }

  #judge(matching: PolicySet): Verdict {
    const applying = this.#policies.filter((_, place) => matching.has(place));
    // One allowing policy that demands a re-authentication demands it for the login, whichever policy allows it.
    const strict = unionOf(
      applying
        .filter(({ policy }) => policy.action === "allow" && policy.requireReauth)
        .map(({ policy }) => this.#sets.of(policy.filter, false)),
    );
    const left = this.#sets.all.clone();
    const open: DeviceSet = new TypedFastBitSet();
    const shares: Share[] = [];
    for (const { policy, reason, strict: strictReason } of applying) {
      const isDeny = policy.action === "deny";
      const devices = this.#sets.of(policy.filter, isDeny).new_intersection(left);
      const held = isDeny ? NO_DEVICES : devices.new_intersection(strict);
      const direct = devices.new_difference(held);
      if (!direct.isEmpty()) shares.push({ reason, devices: direct });
      if (!held.isEmpty()) shares.push({ reason: strictReason, devices: held });
      if (!isDeny) open.union(devices);
      left.difference(devices);
    }
    return { shares, open, held: open.new_intersection(strict), endings: [] };
  }
}

/** A set of access policies. */
type PolicySet = TypedFastBitSet;

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
