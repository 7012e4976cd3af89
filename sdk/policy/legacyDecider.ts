import { TypedFastBitSet } from "typedfastbitset";
import {
  Access,
  type Decider,
  type DeciderNouns,
  type DecidingObject,
  type Decision,
  type Evaluation,
  type MentionedLogins,
  type Reason,
  type RuleSet,
  type Share,
  type SingleLogin,
  type Verdict,
} from "./decider.ts";
import {
  type AccessKey,
  type AccessRule,
  ASSUMED_MEMBER,
  explain,
  filterMatches,
  isInForce,
  keyAdmits,
  keyRefusal,
  strongestFirst,
} from "./decisions.ts";
import { type DeviceSet, NO_DEVICES, unionOf } from "./deviceSets.ts";
import { type AccessMember, earlier, hasExpired, type KeyLapse, type KeyOwner, keyLapse } from "./expiry.ts";
import type { Outcome } from "./identity.ts";
import type { NamespacePolicy, SubjectFacts } from "./namespacePolicy.ts";
import { type Pattern, patternOf } from "./pattern.ts";

export const LEGACY_NOUNS: DeciderNouns = {
  subject: ["key", "keys"],
  subjectInShort: ["key", "keys"],
  selector: "key",
  object: ["firewall rule", "firewall rules"],
  objectInShort: "rule",
  loginSources: "patterns",
  basis: "public keys",
};

/** Evaluates logins by public keys and firewall rules. */
export class LegacyDecider implements Decider<AccessKey> {
  readonly mode = "legacy";
  readonly nouns = LEGACY_NOUNS;
  readonly policies = [];
  // The firewall allows logins by default.
  readonly deniesEverything = false;
  readonly defaultDenial = undefined;
  readonly #policy: NamespacePolicy;

  constructor(policy: NamespacePolicy) {
    this.#policy = policy;
  }

  get subjects(): readonly AccessKey[] {
    return this.#policy.keys;
  }

  get objects(): readonly DecidingObject[] {
    return objectsOf(this.#policy.keys, this.#policy.rules);
  }

  get counts() {
    return { keys: this.#policy.keys.length, rules: this.#policy.rules.length };
  }

  get ends(): readonly string[] {
    const { keys, rules, members = [] } = this.#policy;
    return [...keys, ...rules, ...members].flatMap(({ expiresAt }) => expiresAt ?? []);
  }

  mentioned(): MentionedLogins {
    const { keys, rules } = this.#policy;
    return {
      logins: [],
      loginPatterns: [...keys, ...rules].map(({ username }) => username),
      addressPatterns: rules.map(({ sourceIp }) => sourceIp),
      networks: [],
    };
  }

  withSubjects(isKept: (subject: Pick<SubjectFacts, "id" | "name">) => boolean): NamespacePolicy {
    const keys = this.#policy.keys.filter(({ fingerprint, name }) => isKept({ id: fingerprint, name }));
    return { ...this.#policy, keys };
  }

  decide({ fingerprint }: AccessKey, login: SingleLogin): Decision {
    const { deniedBy, rule } = explain(this.#policy, { fingerprint, ...login });
    return { deniedBy, rule, policy: null };
  }

  exampleFor({ username, filter }: AccessKey, logins: readonly string[]) {
    const { devices } = this.#policy;
    const device = devices.find((candidate) => filterMatches(filter, candidate)) ?? devices[0];
    if (!device) return undefined;
    const login = logins.find((name) => keyAdmits({ username, filter: {} }, device, name));
    return { login: login ?? logins[0] ?? "", device };
  }

  changedAdmission(before: AccessKey, after: AccessKey): string {
    const [old, now] = [before, after].map(({ username, filter }) => JSON.stringify([username, filter]));
    return old === now ? "the device's name or tags change" : "the key's logins or devices change";
  }

  access(evaluation: Evaluation): Access<AccessKey> {
    return new LegacyAccess(this, this.#policy, evaluation);
  }
}

const objectsOf = (keys: readonly AccessKey[], rules: readonly AccessRule[]): DecidingObject[] => [
  ...keys.map(
    ({ fingerprint, name, username, filter, expiresAt }): DecidingObject => ({
      kind: "key",
      noun: "key",
      effect: "admit",
      givesAccess: true,
      details: undefined,
      id: fingerprint,
      name,
      filter,
      expiresAt,
      patterns: [login(username), device(filter)],
      appliesTo: (key: AccessKey) => key.fingerprint === fingerprint,
    }),
  ),
  ...rules.map(
    ({ id, action, priority, username, sourceIp, filter, expiresAt }): DecidingObject => ({
      kind: "rule",
      noun: "rule",
      effect: action,
      givesAccess: false,
      id,
      name: id,
      filter,
      expiresAt,
      details: `${action}, priority ${priority}`,
      patterns: [login(username), address(sourceIp), device(filter)],
      appliesTo: () => true,
    }),
  ),
];

const login = (pattern: string) => ({ field: "username", subject: "login", pattern }) as const;
const address = (pattern: string) => ({ field: "sourceIp", subject: "address", pattern }) as const;
const device = ({ hostname = "" }: DecidingObject["filter"]) =>
  ({ field: "filter.hostname", subject: "device", pattern: hostname }) as const;

/** The decisions of the public keys and the firewall. The firewall's verdicts are the same for all keys. */
class LegacyAccess extends Access<AccessKey> {
  readonly keys: readonly AccessKey[];
  readonly rules: readonly AccessRule[];
  readonly #byLogin: RuleSets;
  readonly #byAddress: RuleSets;
  readonly #byBoth = new Map<RuleSet, Map<RuleSet, Verdict>>();
  readonly #verdicts = new Map<string, Verdict>();
  readonly #reasons = new Map<AccessRule | null, Reason[]>();
  #members: ReadonlyMap<string, AccessMember> | undefined;

  constructor(decider: Decider<AccessKey>, policy: NamespacePolicy, evaluation: Evaluation) {
    super(decider, policy, evaluation);
    this.keys = policy.keys.filter((key) => this.lapseOf(key) === undefined);
    this.rules = strongestFirst(policy.rules.filter((rule) => isInForce(rule, this.time)));
    this.#byLogin = new RuleSets(this.rules, ({ username }) => username);
    this.#byAddress = new RuleSets(this.rules, ({ sourceIp }) => sourceIp);
  }

  get objects(): readonly DecidingObject[] {
    return objectsOf(this.keys, this.rules);
  }

  groupOf(): object {
    return this;
  }

  outcomeOf(outcome: Reason["outcome"]): Outcome {
    return outcome === "deny" ? "deny" : "allow";
  }

  endOf(key: AccessKey): string | undefined {
    return earlier(key.expiresAt, this.#ownerOf(key)?.expiresAt);
  }

  #ownerOf({ owner }: AccessKey): KeyOwner | undefined {
    if (owner === undefined) return undefined;
    const { members } = this.policy;
    if (members === undefined) return ASSUMED_MEMBER;
    this.#members ??= new Map(members.map((member) => [member.id, member]));
    return this.#members.get(owner);
  }

  lapseOf(key: AccessKey): KeyLapse | undefined {
    return keyLapse(key, this.#ownerOf(key), this.time);
  }

  admitted(key: AccessKey, login: string): DeviceSet | undefined {
    const isRefused = keyRefusal(key, this.#ownerOf(key), { login, at: this.time }) !== undefined;
    return isRefused ? undefined : this.sets.of(key.filter, false);
  }

  rulesForLogin(login: string): RuleSet {
    return this.#byLogin.of(login);
  }

  rulesForAddress(address: string): RuleSet {
    return this.#byAddress.of(address);
  }

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
    const left = this.sets.all.clone();
    const open = this.sets.all.clone();
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

  /**
   * Yields each rule with the devices on which it allows or denies the logins, and removes these devices from `left`.
   * Finally, yields the devices on which no rule matches.
   */
  *#decisions(
    rules: readonly AccessRule[],
    left: DeviceSet,
    at: Date,
  ): Generator<readonly [AccessRule | null, DeviceSet]> {
    for (const rule of rules) {
      if (hasExpired(rule, at)) continue;
      const devices = this.sets.of(rule.filter, rule.action === "deny").new_intersection(left);
      if (devices.isEmpty()) continue;
      left.difference(devices);
      yield [rule, devices];
    }
    if (!left.isEmpty()) yield [null, left];
  }

  /**
   * Groups devices by the time at which their logins end. The rule allows the logins until it expires. Then the weaker
   * rules allow or deny them.
   */
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
}

/** Finds the rules whose pattern matches a string, and caches the result for each string. */
class RuleSets {
  /**
   * Each distinct pattern in compiled form, with all rules that contain it. This class keeps the compiled patterns,
   * because the `patternOf` cache is too small for all patterns of a large policy.
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
      // An invalid pattern matches every string in a deny rule, and no string in an allow rule.
      const test = patternOf(textOf(rule))?.test ?? (() => rule.action === "deny");
      return { test, rules: new TypedFastBitSet(places) };
    });
  }

  /**
   * Returns the rules whose pattern matches a string. Returns the same object for strings that match the same rules.
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
