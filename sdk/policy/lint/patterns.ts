import type { Access } from "../access.ts";
import type { DeviceFilter } from "../decisions.ts";
import { areDisjoint } from "../disjoint.ts";
import { mistakenFor, mistakenText, patternOf, type Subject } from "../pattern.ts";
import {
  type Field,
  type Finding,
  type FindingObject,
  keyName,
  keyObject,
  quoted,
  ruleName,
  ruleObject,
} from "./finding.ts";

/** A pattern, and the key or rule that has it. */
export interface PatternUse {
  readonly object: FindingObject;
  /** The name of the object at the beginning of a sentence. */
  readonly who: string;
  readonly effect: "admit" | "allow" | "deny";
  readonly field: Field;
  readonly subject: Subject;
  readonly pattern: string;
}

/** The patterns of all keys and active rules; empty ones, which match everything, are left out. */
export function patternUses({ policy, rules }: Access): PatternUse[] {
  const uses = [
    ...policy.keys.flatMap((key) => {
      const use = { object: keyObject(key), who: keyName(key), effect: "admit" } as const;
      return [
        { ...use, ...login(key.username) },
        { ...use, ...device(key.filter) },
      ];
    }),
    ...rules.flatMap((rule) => {
      const use = { object: ruleObject(rule), who: ruleName(rule), effect: rule.action } as const;
      return [
        { ...use, ...login(rule.username) },
        { ...use, ...address(rule.sourceIp) },
        { ...use, ...device(rule.filter) },
      ];
    }),
  ];
  return uses.filter(({ pattern }) => pattern !== "");
}

const login = (pattern: string) => ({ field: "username", subject: "login", pattern }) as const;
const address = (pattern: string) => ({ field: "sourceIp", subject: "address", pattern }) as const;
const device = ({ hostname = "" }: DeviceFilter) =>
  ({ field: "filter.hostname", subject: "device", pattern: hostname }) as const;

/** What a pattern that does not compile does to its object. */
const BROKEN = {
  admit: () => "so the key admits nobody",
  allow: () => "so the rule allows nothing",
  deny: ({ subject }: PatternUse) => `so the rule denies every ${subject} that the rest of it matches`,
} as const;

/** What a pattern that matches nothing does to its object. */
const IMPOSSIBLE = {
  admit: "so the key never admits a login",
  allow: "so the rule never allows a login",
  deny: "so the rule never denies a login",
} as const;

const SUBJECTS = { login: "login name", address: "IP address", device: "device name" } as const;

/** At most one finding for a pattern: it does not compile, is in another notation, or matches no text that there can be. */
export function wrongPatterns(uses: readonly PatternUse[]): Finding[] {
  return uses.flatMap((use): Finding[] => {
    const { who, field, pattern, object, effect, subject } = use;
    const found = { severity: "error", object, field } as const;
    const what = `${who}: ${field} ${quoted(pattern)}`;
    if (patternOf(pattern) === undefined) {
      const message = `${what} is not a regular expression in RE2 syntax, ${BROKEN[effect](use)}.`;
      return [{ ...found, rule: "broken-pattern", message, suggestion: "Write the pattern anew." }];
    }
    const mistaken = mistakenFor(pattern, subject);
    if (mistaken) {
      const message = `${what} is ${mistaken.notation}, and the service takes it for a regular expression.`;
      return [{ ...found, rule: "mistaken-pattern", message, suggestion: mistakenText(mistaken) }];
    }
    if (!areDisjoint([pattern], subject)) return [];
    const message = `${what} matches no ${SUBJECTS[subject]}, ${IMPOSSIBLE[effect]}.`;
    return [{ ...found, rule: "never-matches", message, suggestion: "Correct the pattern." }];
  });
}

/** True for a pattern because of which its key or rule never matches. */
export const matchesNothing = ({ pattern, subject, effect }: PatternUse): boolean =>
  patternOf(pattern) === undefined ? effect !== "deny" : areDisjoint([pattern], subject);

const LETTERS = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"];

/** Texts with nothing in common: a pattern that is found in all of them is found in every text. */
const PROBES: Readonly<Record<Subject, readonly string[]>> = {
  login: [...LETTERS, ".", "@", "root", "ana.reis@example.com"],
  address: [
    "192.0.2.1",
    "10.255.3.46",
    "87.87.87.87",
    "2001:db8::1",
    "::",
    "fe::",
    "fe80::abcd:ef01:2345:6789",
  ],
  device: [...LETTERS, "web-1", "00-1b-44-11-3a-b7"],
};

/**
 * True when a pattern is found in every text.
 * @param broken the answer for a pattern that does not compile
 */
export function isEverything(pattern: string, subject: Subject, broken: boolean): boolean {
  const finds = patternOf(pattern)?.test;
  return finds ? PROBES[subject].every(finds) : broken;
}

/**
 * True when a filter is for every device that there can be.
 * @param broken the answer for a pattern that does not compile
 */
export function isEveryDevice({ hostname, tags }: DeviceFilter, broken: boolean): boolean {
  return hostname ? isEverything(hostname, "device", broken) : !tags?.length;
}
