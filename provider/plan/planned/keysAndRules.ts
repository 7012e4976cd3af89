import { isDeepStrictEqual } from "node:util";
import { parseSshPublicKey } from "@gatehouse-access/sdk/contract";
import { Access, type AccessDevice, type AccessRule, areDisjoint } from "@gatehouse-access/sdk/policy";
import type { ResourceValues } from "../../engine/index.ts";
import { acceptedDevices } from "../../estate/namespaceState.ts";
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

/** Two rules of one priority, of which one allows and the other denies what both match. */
export interface Contradiction {
  readonly text: string;
  /** True where the plan makes both: then nobody can tell which one is made last, and so decides. */
  readonly isUndecided: boolean;
}

/** Most pairs of rules that are compared: each takes up to a millisecond. */
const PAIRS_MAX = 10_000;

/**
 * Contradictions of rules that a change makes or changes. The rule that was made last decides, whatever a program says:
 * when it is deleted and made again, the other one decides.
 */
export function contradictions({ rules, estate, devices }: Draft): Contradiction[] {
  const known = new Map(estate.policy.rules.map((rule) => [rule.id, rule]));
  const active = [...rules.values()].filter((rule) => rule.active);
  let shared: ReturnType<typeof sharedDevices> | undefined;
  const touched = new Set(active.filter((rule) => !isDeepStrictEqual(known.get(rule.id), rule)));
  const found: Contradiction[] = [];
  const done = new Set<AccessRule>();
  let pairs = 0;
  for (const rule of touched) {
    done.add(rule);
    for (const other of active) {
      if (other.priority !== rule.priority || other.action === rule.action || done.has(other)) continue;
      pairs += 1;
      if (pairs > PAIRS_MAX) {
        const text = `more than ${PAIRS_MAX} pairs of rules that allow and deny have one priority, too many to compare; give them priorities that differ`;
        return [...found, { text, isUndecided: true }];
      }
      shared ??= sharedDevices(acceptedDevices(devices.values()));
      const device = shared(rule, other);
      if (device !== undefined)
        found.push(contradiction(rule, other, device, !known.has(rule.id) && !known.has(other.id)));
    }
  }
  return found;
}

function contradiction(
  rule: AccessRule,
  other: AccessRule,
  device: string,
  isUndecided: boolean,
): Contradiction {
  const which = isUndecided ? ", which nobody can tell before they are made" : "";
  const text = `FirewallRule "${rule.id}" and "${other.id}" have the priority ${rule.priority}, one allows and the other denies logins on ${device}, and the one that was made last decides${which}; give them priorities that differ`;
  return { text, isUndecided };
}

/** Finds a device on which two rules match some login, by its name; undefined where there is certainly none. */
function sharedDevices(devices: readonly AccessDevice[]) {
  const access = new Access({ devices, keys: [], rules: [] }, { logins: [], addresses: [] });
  const nameOf = new Map(devices.map(({ uid, name }) => [uid, name]));
  const devicesOf = ({ filter, action }: AccessRule) => access.devicesOf(filter, action === "deny");
  return (rule: AccessRule, other: AccessRule): string | undefined => {
    if (areDisjoint([rule.username, other.username], "login")) return undefined;
    if (areDisjoint([rule.sourceIp, other.sourceIp], "address")) return undefined;
    const [uid = ""] = access.uidsOf(devicesOf(rule).new_intersection(devicesOf(other)));
    return nameOf.get(uid);
  };
}
