import type { Access, RuleSet } from "../decider.ts";
import type { AccessRule } from "../decisions.ts";
import type { DeviceSet } from "../deviceSets.ts";
import {
  type Field,
  type Finding,
  fieldOf,
  filterText,
  listed,
  objectId,
  quoted,
  ruleName,
  ruleObject,
  ruleText,
} from "./finding.ts";

/**
 * Returns findings about the effects of rules.
 * @param explained ids of objects with a pattern that matches nothing. A separate finding exists for each of them
 */
export function ruleFindings(access: Access, explained: ReadonlySet<string>): Finding[] {
  const { policy, evaluated, rules } = access;
  if (policy.devices.length === 0 || evaluated.logins.length === 0 || evaluated.addresses.length === 0)
    return [];
  const classes = {
    logins: classesOf(evaluated.logins, (login) => access.rulesForLogin(login)),
    addresses: classesOf(evaluated.addresses, (address) => access.rulesForAddress(address)),
  };
  const decisions = new Decisions(access, situationsOf(classes));
  const idsOf = (places: Iterable<number> = []) => [...places].flatMap((place) => rules[place]?.id ?? []);
  return [
    ...rules.flatMap((rule, place) => {
      if (!decisions.matching.has(place)) {
        return explained.has(objectId(ruleObject(rule))) ? [] : [neverMatches(access, classes, rule, place)];
      }
      if (!decisions.deciding.has(place)) return [unreachable(rule, idsOf(decisions.stronger.get(place)))];
      return decisions.needed.has(place) ? [] : [redundant(rule, idsOf(decisions.weaker.get(place)))];
    }),
    ...contradictions(access, decisions.disagreements),
  ];
}

function unreachable(rule: AccessRule, by: readonly string[]): Finding {
  const others =
    by.length === 1 ? `the stronger rule ${listed(by)} decides` : `the stronger rules ${listed(by)} decide`;
  return {
    rule: "unreachable-rule",
    severity: "warning",
    message: `${ruleName(rule)} decides no evaluated login: for every login that it matches, ${others}.`,
    object: ruleObject(rule),
    field: "priority",
    suggestion: `Raise the priority of this rule above ${by.length === 1 ? "the stronger rule" : "the stronger rules"}, or remove this rule.`,
    evidence: { rules: by },
  };
}

function redundant(rule: AccessRule, by: readonly string[]): Finding {
  const otherwise =
    by.length === 0
      ? "without it, no rule would match, and the login would still be allowed"
      : `without it, ${by.length === 1 ? "rule" : "the rules"} ${listed(by)} would make the same decision`;
  return {
    rule: "redundant-rule",
    severity: "info",
    message: `${ruleName(rule)} changes no decision about an evaluated login: ${otherwise}.`,
    object: ruleObject(rule),
    suggestion: "Remove the rule, unless it is for future logins or devices.",
    evidence: { rules: by },
  };
}

function neverMatches(
  access: Access,
  { logins, addresses }: Classes,
  rule: AccessRule,
  place: number,
): Finding {
  const { action, username, sourceIp, filter } = rule;
  const noDevice = access.devicesOf(filter, action === "deny").isEmpty();
  const misses: { field: Field; text: string }[] = [];
  const miss = (field: Field, text: string) => misses.push({ field, text });
  if (noDevice) miss(fieldOf(filter), `${filterText(filter)} matches no device`);
  if (!logins.some((text) => text.rules.has(place))) {
    miss("username", `username ${quoted(username)} matches no evaluated login`);
  }
  if (!addresses.some((text) => text.rules.has(place))) {
    miss("sourceIp", `sourceIp ${quoted(sourceIp)} matches no evaluated address`);
  }
  return {
    rule: "never-matches",
    severity: noDevice ? "warning" : "info",
    message: `${ruleName(rule)} never matches: its ${misses.map(({ text }) => text).join(", and its ")}.`,
    object: ruleObject(rule),
    field: misses[0]?.field,
    suggestion: noDevice
      ? "Correct the filter, or remove the rule."
      : "Correct the pattern, remove the rule, or add the missing login or address to the evaluated ones.",
  };
}

function contradictions({ policy, rules }: Access, disagreements: readonly Disagreement[]): Finding[] {
  const nameOf = new Map(policy.devices.map(({ uid, name }) => [uid, name]));
  return disagreements.flatMap(({ winner, loser, login, address, uid }): Finding[] => {
    const [later, earlier] = [rules[winner], rules[loser]];
    const device = nameOf.get(uid);
    if (!later || !earlier || device === undefined) return [];
    return [
      {
        rule: "contradiction",
        severity: "error",
        message: `${ruleName(later)} and rule ${ruleText(earlier)} both match the login ${quoted(login)} from ${address} on ${quoted(device)}. The first rule decides only because it was created later.`,
        object: ruleObject(later),
        field: "priority",
        suggestion: "Give a higher priority to the rule that should decide.",
        evidence: { rules: [earlier.id], counterexample: { login, address, device } },
      },
    ];
  });
}

interface Decision {
  readonly place: number;
  readonly devices: DeviceSet;
}

/** Two rules of the same priority, of which one allows a login and the other denies it. */
interface Disagreement {
  /** Index of the rule that takes effect, since it was created later than the other rule. */
  readonly winner: number;
  readonly loser: number;
  readonly login: string;
  readonly address: string;
  readonly uid: string;
}

/**
 * The decisions of the rules about the evaluated logins, and the effect of each rule. The effect consists of the
 * decisions that would be different without the rule. Each rule is represented by its index in {@link Access.rules}.
 */
class Decisions {
  readonly matching = new Set<number>();
  readonly deciding = new Set<number>();
  /** Rules that have an effect: without the rule, at least one decision would be different. */
  readonly needed = new Set<number>();
  /**
   * The stronger rules that take precedence for all logins of a rule, by rule. Contains an entry for each rule that
   * matches logins but has precedence for none of them.
   */
  readonly stronger = new Map<number, Set<number>>();
  /**
   * The weaker rules that would make the same decisions as a rule, by rule. Contains an entry for each rule that could
   * be removed without changing a decision.
   */
  readonly weaker = new Map<number, Set<number>>();
  readonly #disagreements = new Map<string, Disagreement>();
  readonly #access: Access;
  readonly #devices: readonly DeviceSet[];

  constructor(access: Access, situations: Iterable<Situation>) {
    this.#access = access;
    this.#devices = access.rules.map(({ filter, action }) => access.devicesOf(filter, action === "deny"));
    for (const situation of situations) {
      for (const decision of this.#decide(situation)) {
        const rest = situation.rules.slice(situation.rules.indexOf(decision.place) + 1);
        this.#without(decision, rest);
        this.#compare(decision, rest, situation);
      }
    }
  }

  get disagreements(): readonly Disagreement[] {
    return [...this.#disagreements.values()];
  }

  #decide({ rules }: Situation): Decision[] {
    const left = this.#access.devicesOf({}, false).clone();
    const decisions: Decision[] = [];
    for (const place of rules) {
      const all = this.#devicesOf(place);
      if (all.isEmpty()) continue;
      this.matching.add(place);
      const devices = all.new_intersection(left);
      if (!devices.isEmpty()) {
        this.deciding.add(place);
        decisions.push({ place, devices });
        left.difference(devices);
      } else if (!this.deciding.has(place)) {
        for (const above of decisions)
          if (above.devices.intersects(all)) note(this.stronger, place, above.place);
      }
    }
    return decisions;
  }

  #without({ place, devices }: Decision, rest: readonly number[]): void {
    if (this.needed.has(place)) return;
    const { action } = this.#ruleAt(place);
    const left = devices.clone();
    for (const other of rest) {
      if (left.isEmpty()) return;
      const all = this.#devicesOf(other);
      if (!left.intersects(all)) continue;
      note(this.weaker, place, other);
      if (this.#ruleAt(other).action !== action) {
        this.needed.add(place);
        return;
      }
      left.difference(all);
    }
    if (action === "deny" && !left.isEmpty()) this.needed.add(place);
  }

  #compare({ place, devices }: Decision, rest: readonly number[], { login, address }: Situation): void {
    const { action, priority } = this.#ruleAt(place);
    for (const other of rest) {
      const rule = this.#ruleAt(other);
      if (rule.priority !== priority) return;
      const name = `${place},${other}`;
      if (rule.action === action || this.#disagreements.has(name)) continue;
      const [uid] = this.#access.uidsOf(devices.new_intersection(this.#devicesOf(other)));
      if (uid === undefined) continue;
      this.#disagreements.set(name, { winner: place, loser: other, login, address, uid });
    }
  }

  #ruleAt = (place: number): AccessRule => at(this.#access.rules, place);
  #devicesOf = (place: number): DeviceSet => at(this.#devices, place);
}

function at<T>(list: readonly T[], place: number): T {
  const item = list[place];
  if (item === undefined) throw new RangeError(`no rule has the place ${place}`);
  return item;
}

function note(notes: Map<number, Set<number>>, place: number, other: number): void {
  const known = notes.get(place);
  if (known) known.add(other);
  else notes.set(place, new Set([other]));
}

interface TextClass {
  readonly text: string;
  readonly rules: RuleSet;
}

/** A login name and an address that represent all logins that match the same rules. */
interface Situation {
  readonly login: string;
  readonly address: string;
  /** Indexes of the matching rules in {@link Access.rules}, strongest first. */
  readonly rules: readonly number[];
}

/**
 * The login names and addresses that represent the evaluated ones: one login name and one address for each set of
 * matching rules.
 */
interface Classes {
  readonly logins: readonly TextClass[];
  readonly addresses: readonly TextClass[];
}

function* situationsOf({ logins, addresses }: Classes): Generator<Situation> {
  const seen = new Set<string>();
  for (const login of logins) {
    for (const address of addresses) {
      const rules = login.rules.new_intersection(address.rules).array();
      const name = rules.join();
      if (seen.has(name)) continue;
      seen.add(name);
      yield { login: login.text, address: address.text, rules };
    }
  }
}

function classesOf(texts: readonly string[], rulesOf: (text: string) => RuleSet): TextClass[] {
  const classes = new Map<RuleSet, TextClass>();
  for (const text of texts) {
    const rules = rulesOf(text);
    if (!classes.has(rules)) classes.set(rules, { text, rules });
  }
  return [...classes.values()];
}
