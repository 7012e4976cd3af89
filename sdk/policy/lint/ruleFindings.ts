import type { Access } from "../access.ts";
import type { AccessRule } from "../facts.ts";
import { Decisions, type Disagreement } from "./decisions.ts";
import type { Field, Finding } from "./finding.ts";
import { Situations } from "./situations.ts";
import { fieldOf, filterText, listed, objectId, quoted, ruleName, ruleObject, ruleText } from "./wording.ts";

/**
 * Findings for active rules that never match, never decide, change nothing or contradict each other.
 * @param explained ids of the objects with a wrong pattern, whose finding explains why they match nothing
 */
export function ruleFindings(access: Access, explained: ReadonlySet<string>): Finding[] {
  const { policy, domain, rules } = access;
  if (policy.devices.length === 0 || domain.logins.length === 0 || domain.addresses.length === 0) return [];
  const situations = new Situations(access);
  const decisions = new Decisions(access, situations);
  const idsOf = (places: Iterable<number> = []) => [...places].flatMap((place) => rules[place]?.id ?? []);
  return [
    ...rules.flatMap((rule, place) => {
      if (!decisions.matching.has(place)) {
        return explained.has(objectId(ruleObject(rule)))
          ? []
          : [neverMatches(access, situations, rule, place)];
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
    message: `${ruleName(rule)} decides about no login of the domain: where it matches, ${others}.`,
    object: ruleObject(rule),
    field: "priority",
    suggestion: `Raise its priority above ${by.length === 1 ? "that rule" : "those rules"}, or remove it.`,
    evidence: { rules: by },
  };
}

function redundant(rule: AccessRule, by: readonly string[]): Finding {
  const otherwise =
    by.length === 0
      ? "without it no rule would match, which allows as well"
      : `without it ${by.length === 1 ? "rule" : "the rules"} ${listed(by)} would decide the same`;
  return {
    rule: "redundant-rule",
    severity: "info",
    message: `${ruleName(rule)} changes no decision about a login of the domain: ${otherwise}.`,
    object: ruleObject(rule),
    suggestion: "Remove it, unless logins or devices are to come that only it is for.",
    evidence: { rules: by },
  };
}

function neverMatches(
  access: Access,
  { logins, addresses }: Situations,
  rule: AccessRule,
  place: number,
): Finding {
  const { action, username, sourceIp, filter } = rule;
  const noDevice = access.devicesOf(filter, action === "deny").isEmpty();
  const misses: { field: Field; text: string }[] = [];
  const miss = (field: Field, text: string) => misses.push({ field, text });
  if (noDevice) miss(fieldOf(filter), `${filterText(filter)} is for no device`);
  if (!logins.some((text) => text.rules.has(place))) {
    miss("username", `username ${quoted(username)} is for no login of the domain`);
  }
  if (!addresses.some((text) => text.rules.has(place))) {
    miss("sourceIp", `sourceIp ${quoted(sourceIp)} is for no address of the domain`);
  }
  return {
    rule: "never-matches",
    severity: noDevice ? "warning" : "info",
    message: `${ruleName(rule)} never matches: its ${misses.map(({ text }) => text).join(", and its ")}.`,
    object: ruleObject(rule),
    field: misses[0]?.field,
    suggestion: noDevice
      ? "Correct the filter, or remove the rule."
      : "Correct the pattern, remove the rule, or add what it is for to the domain.",
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
        message: `${ruleName(later)} and rule ${ruleText(earlier)} both match the login ${quoted(login)} from ${address} on ${quoted(device)}, and only that the former was made later makes it win.`,
        object: ruleObject(later),
        field: "priority",
        suggestion: "Give the rule that is to win the higher priority.",
        evidence: { rules: [earlier.id], counterexample: { login, address, device } },
      },
    ];
  });
}
