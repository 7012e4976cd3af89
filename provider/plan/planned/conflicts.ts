import { isDeepStrictEqual } from "node:util";
import {
  type AccessDevice,
  type AccessRule,
  areDisjoint,
  evaluateAccess,
} from "@gatehouse-access/sdk/policy";
import { claimsOfId } from "../../lifecycle/claims.ts";
import type { Claim } from "../../model/definition.ts";
import type { Draft } from "../../model/draft.ts";
import { isHidden, knownInputs, type PlannedStep, UnpredictableError } from "../../model/plannedStep.ts";
import { idWithin } from "../../model/values.ts";
import { accessDevices, devicesOf } from "../../resources/device.ts";
import { rulesOf } from "../../resources/firewallRule.ts";

/**
 * Two or more resources that declare the same object. Each resource would revert the changes of the other resources.
 */
export interface DuplicateDeclarations {
  /** Description of the object. */
  readonly object: string;
  /** URNs of the resources that declare the object. */
  readonly urns: readonly string[];
}

/** A resource of the program. */
export interface Declared {
  readonly planned: PlannedStep;
  /** Id of the object with the tenant; undefined if the object does not exist yet. */
  readonly id: string | undefined;
}

/**
 * Finds resources that declare the same object. Compares the keys that identify the declared objects, as the provider
 * does during a run. Unlike the provider, the function also finds different selectors that match the same device.
 */
export function duplicateDeclarations(draft: Draft, declared: readonly Declared[]): DuplicateDeclarations[] {
  const claims = declared.flatMap((one) =>
    claimsOf(draft, one).map(({ key, shared = false }) => {
      const { step, definition } = one.planned;
      return { key, shared, urn: step.urn, kind: definition.name };
    }),
  );
  const duplicates = new Map<string, DuplicateDeclarations>();
  for (const [key, all] of Map.groupBy(claims, (claim) => claim.key)) {
    const urns = [...new Set(all.map(({ urn }) => urn))];
    const mayShare = new Set(all.map(({ kind }) => kind)).size === 1 && all.every(({ shared }) => shared);
    const name = urns.toSorted().join();
    if (urns.length > 1 && !mayShare && !duplicates.has(name))
      duplicates.set(name, { object: inWords(draft, key), urns });
  }
  return [...duplicates.values()];
}

function claimsOf(draft: Draft, { planned, id }: Declared): readonly Claim[] {
  const { definition, after } = planned;
  const { identity, inputs: fields } = definition;
  const ofId = id === undefined ? [] : claimsOfId(definition, id);
  if (!identity || !after || identity.fields.some((field) => isHidden(after.inputs[field]))) return ofId;
  const inputs: Record<string, unknown> = { ...validInputs(planned) };
  if (identity.fields.some((field) => fields[field]?.required && inputs[field] === undefined)) return ofId;
  if (fields.tenant) inputs.tenant = draft.live.tenant;
  // The selector may be a name or a MAC address. It is replaced by the device's uid from the id of the object, so that
  // all claims on the same device are equal. A claim is a key that identifies the declared object.
  if (fields.device) inputs.device = id?.split("/")[1] ?? inputs.device;
  return [...identity.ofInputs(inputs), ...ofId];
}

/**
 * Returns the canonical inputs of a resource. Returns no inputs if one of them is invalid; the plan reports the invalid
 * input separately.
 */
function validInputs(planned: PlannedStep): Readonly<Record<string, unknown>> {
  try {
    return knownInputs(planned);
  } catch (error) {
    if (!(error instanceof UnpredictableError)) throw error;
    return {};
  }
}

/**
 * Returns the key of a declared object as text for messages. The text omits the tenant, and contains device names
 * instead of uids.
 */
function inWords({ live }: Draft, key: string): string {
  const text = key.replace(`${live.tenant}/`, "").replace(`${live.tenant} `, "");
  const device = devicesOf(live).find((object) => text.includes(idWithin(object)));
  return device ? text.replace(idWithin(device), `the device ${device.name}`) : text;
}

/**
 * Two rules of the same priority that match the same login. One rule allows the login, and the other rule denies it.
 */
interface Contradiction {
  readonly text: string;
  /**
   * True if the plan creates both rules. The rule that is created last decides, but the order of creation is not known
   * before the apply.
   */
  readonly isUndecided: boolean;
}

/** Maximum number of pairs of rules that are compared. The comparison of one pair takes up to one millisecond. */
const PAIRS_MAX = 10_000;

/**
 * Finds pairs of contradictory rules in which the plan creates or changes at least one rule. In such a pair, the rule
 * that was created last decides.
 */
export function contradictions(draft: Draft): Contradiction[] {
  const known = new Map(rulesOf(draft.live).map((rule) => [rule.id, rule]));
  const active = rulesOf(draft).filter((rule) => rule.active);
  let shared: ReturnType<typeof sharedDevices> | undefined;
  const conflicts: Contradiction[] = [];
  const done = new Set<AccessRule>();
  let pairs = 0;
  for (const rule of active) {
    if (isDeepStrictEqual(known.get(rule.id), rule)) continue;
    done.add(rule);
    for (const other of active) {
      if (other.priority !== rule.priority || other.action === rule.action || done.has(other)) continue;
      pairs += 1;
      if (pairs > PAIRS_MAX) {
        const text = `more than ${PAIRS_MAX} pairs of an allow rule and a deny rule have the same priority, too many to compare; give the rules different priorities`;
        return [...conflicts, { text, isUndecided: true }];
      }
      shared ??= sharedDevices(accessDevices(devicesOf(draft)));
      const device = shared(rule, other);
      if (device === undefined) continue;
      const isUndecided = !known.has(rule.id) && !known.has(other.id);
      const order = isUndecided ? " (unknown before the apply)" : "";
      const text = `FirewallRule "${rule.id}" and "${other.id}" have the same priority ${rule.priority}; one rule allows and the other rule denies logins on ${device}, and the rule created last decides${order}; give the rules different priorities`;
      conflicts.push({ text, isUndecided });
    }
  }
  return conflicts;
}

/**
 * Returns a function that finds a device on which two rules match the same login. The function returns the name of the
 * device.
 */
function sharedDevices(devices: readonly AccessDevice[]) {
  const access = evaluateAccess({ devices, keys: [], rules: [] }, { logins: [], addresses: [] });
  const nameOf = new Map(devices.map(({ uid, name }) => [uid, name]));
  const devicesOf = ({ filter, action }: AccessRule) => access.devicesOf(filter, action === "deny");
  return (rule: AccessRule, other: AccessRule): string | undefined => {
    if (areDisjoint([rule.username, other.username], "login")) return undefined;
    if (areDisjoint([rule.sourceIp, other.sourceIp], "address")) return undefined;
    const [uid = ""] = access.uidsOf(devicesOf(rule).new_intersection(devicesOf(other)));
    return nameOf.get(uid);
  };
}
