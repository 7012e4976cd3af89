import { TypedFastBitSet } from "typedfastbitset";
import type { Access } from "../access.ts";
import { type Finder, finderOf } from "./finder.ts";

/** Texts that are all the same to the rules. */
export interface TextClass {
  /** The first of them. */
  readonly text: string;
  /** Places of the rules whose pattern is found in it. */
  readonly rules: TypedFastBitSet;
}

/** A login name and an address, which stand for all that the same rules match. */
export interface Situation {
  readonly login: string;
  readonly address: string;
  /** Places in the access's list of rules, strongest first. */
  readonly rules: readonly number[];
}

/** The login names and addresses of a domain, as far as they are different to its rules. */
export class Situations {
  readonly logins: readonly TextClass[];
  readonly addresses: readonly TextClass[];

  constructor({ domain, rules }: Access) {
    const finders = (patternOf: (rule: (typeof rules)[number]) => string) =>
      rules.map((rule): Finder => finderOf(patternOf(rule)) ?? (() => rule.action === "deny"));
    this.logins = classesOf(
      domain.logins,
      finders(({ username }) => username),
    );
    this.addresses = classesOf(
      domain.addresses,
      finders(({ sourceIp }) => sourceIp),
    );
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

function classesOf(texts: readonly string[], finders: readonly Finder[]): TextClass[] {
  const classes = new Map<string, TextClass>();
  for (const text of texts) {
    const rules = new TypedFastBitSet();
    for (const [place, finds] of finders.entries()) if (finds(text)) rules.add(place);
    const name = rules.array().join();
    if (!classes.has(name)) classes.set(name, { text, rules });
  }
  return [...classes.values()];
}
