import { TypedFastBitSet } from "typedfastbitset";
import type { AccessRule } from "./facts.ts";
import { type Pattern, patternOf } from "./pattern.ts";

/** A set of rules, each by its place in a list. */
export type RuleSet = TypedFastBitSet;

/** Finds the rules whose pattern is found in a text, once for each text. */
export class RuleSets {
  /** Rules with the same pattern share a test. The compiled patterns are held here: the cache may hold fewer. */
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
      return { test: testOf(textOf(rule), rule.action === "deny"), rules: new TypedFastBitSet(places) };
    });
  }

  /** The rules of a text. Texts with the same rules get the same object. */
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

/** The test of a pattern; it answers as `patternFound`. */
const testOf = (pattern: string, broken: boolean): Pattern["test"] =>
  patternOf(pattern)?.test ?? (() => broken);
