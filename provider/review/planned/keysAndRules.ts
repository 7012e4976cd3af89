import { isDeepStrictEqual } from "node:util";
import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import type { AccessRule } from "@gatehouse-access/sdk/policy";
import type { ResourceValues } from "../../engine/index.ts";
import { firewallRule } from "../../resources/firewallRule.ts";
import { publicKey } from "../../resources/publicKey.ts";
import { canonical } from "../../resources/values.ts";
import { isHidden, type PlannedStep } from "../steps.ts";
import { CannotTell, type Draft, GONE, inputsOf, type Kind, outputOf } from "./draft.ts";

function keyOf({ step }: PlannedStep, after: ResourceValues, fingerprint: string) {
  const { name, username, filter } = inputsOf(publicKey, after);
  return { fingerprint, name: isHidden(name) ? step.name : name, username, filter };
}

const fingerprintOf = (after: ResourceValues) =>
  parseSshPublicKey(inputsOf(publicKey, after).data).fingerprint;

/** Keys by fingerprint; new ones last. */
export const keyKind: Kind = {
  decisive: ["data", "username", "filter"],
  idOf: (_draft, _step, after) => fingerprintOf(after),
  isLive: ({ estate }, id) => estate.policy.keys.some(({ fingerprint }) => fingerprint === id),
  remove(draft, _step, before) {
    draft.keys.delete(outputOf(before, "fingerprint"));
  },
  bring(draft, step, after) {
    const fingerprint = fingerprintOf(after);
    draft.keys.set(fingerprint, keyOf(step, after, fingerprint));
  },
  change(draft, step, before, after) {
    const fingerprint = outputOf(before, "fingerprint");
    if (!draft.keys.has(fingerprint)) throw new CannotTell(GONE);
    draft.keys.set(fingerprint, keyOf(step, after, fingerprint));
  },
};

function ruleOf(after: ResourceValues, id: string): AccessRule {
  const { action, active = true, priority, sourceIp, username, filter } = inputsOf(firewallRule, after);
  return { id, action, active, priority, sourceIp, username, filter };
}

/** The id of a rule that is there and says the same, where the resource takes it over. */
function adopted({ estate }: Draft, after: ResourceValues): string | undefined {
  if (!after.inputs.adopt) return undefined;
  const comparable = (rule: AccessRule) => ({
    ...rule,
    id: "",
    filter: canonical(firewallRule.inputs.filter, rule.filter),
  });
  const wanted = comparable(ruleOf(after, ""));
  return estate.policy.rules.find((rule) => isDeepStrictEqual(comparable(rule), wanted))?.id;
}

/** An id that is still free: resources of different parents may have one name. */
function newId(rules: Draft["rules"], name: string, count = 1): string {
  const id = count === 1 ? `${name} (new)` : `${name} (new, ${count})`;
  return rules.has(id) ? newId(rules, name, count + 1) : id;
}

/** Rules by id; new ones last, in the order of the plan. */
export const ruleKind: Kind = {
  decisive: ["action", "active", "priority", "sourceIp", "username", "filter"],
  idOf: (draft, _step, after) => adopted(draft, after),
  isLive: ({ estate }, id) => estate.policy.rules.some((rule) => rule.id === id),
  remove(draft, _step, before) {
    draft.rules.delete(outputOf(before, "ruleId"));
  },
  bring(draft, { step }, after) {
    const id = adopted(draft, after) ?? newId(draft.rules, step.name);
    draft.rules.set(id, ruleOf(after, id));
  },
  change(draft, _step, before, after) {
    const id = outputOf(before, "ruleId");
    if (!draft.rules.has(id)) throw new CannotTell(GONE);
    draft.rules.set(id, ruleOf(after, id));
  },
};

/**
 * New rules of which nobody can tell which one will decide, as sentences: of rules of one priority it is the one made
 * last, and engines make several rules at once.
 */
export function unclearOrder({ rules, estate }: Draft): string[] {
  const known = new Set(estate.policy.rules.map(({ id }) => id));
  const fresh = [...rules.values()].filter(({ id, active }) => active && !known.has(id));
  return fresh.flatMap((rule, place) =>
    fresh
      .slice(place + 1)
      .filter((other) => other.priority === rule.priority && other.action !== rule.action)
      .map(
        (other) =>
          `FirewallRule "${rule.id}" and "${other.id}" have one priority, and the one that is made last decides: the order here is the plan's, which the run need not keep; give them priorities that differ`,
      ),
  );
}
