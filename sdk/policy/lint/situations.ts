import type { Access } from "../access.ts";
import type { RuleSet } from "../ruleSets.ts";

/** Texts in which the patterns of the same rules are found. */
export interface TextClass {
  /** The first of them. */
  readonly text: string;
  /** Places of the rules whose pattern is found in it. */
  readonly rules: RuleSet;
}

/** A login name and an address; they stand for all others that the same rules match. */
export interface Situation {
  readonly login: string;
  readonly address: string;
  /** Places in the access's list of rules, strongest first. */
  readonly rules: readonly number[];
}

/** The login names and addresses of a domain, one for each set of rules that match. */
export class Situations {
  readonly logins: readonly TextClass[];
  readonly addresses: readonly TextClass[];

  constructor(access: Access) {
    const { logins, addresses } = access.domain;
    this.logins = classesOf(logins, (login) => access.rulesForLogin(login));
    this.addresses = classesOf(addresses, (address) => access.rulesForAddress(address));
  }

  /** Each list of rules that match some login name from some address, once. */
  *[Symbol.iterator](): Generator<Situation> {
    const seen = new Set<string>();
    for (const login of this.logins) {
      for (const address of this.addresses) {
        const rules = login.rules.new_intersection(address.rules).array();
        const name = rules.join();
        if (seen.has(name)) continue;
        seen.add(name);
        yield { login: login.text, address: address.text, rules };
      }
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
