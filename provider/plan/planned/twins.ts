import { claimsOfId } from "../../lifecycle/claims.ts";
import type { Claim } from "../../resources/definition.ts";
import { canonicalInputs } from "../../resources/values.ts";
import { isHidden, type PlannedStep } from "../steps.ts";
import type { Draft } from "./draft.ts";

/** Two or more resources that declare one object: each would undo what the others do. */
export interface Twins {
  /** The object, in words. */
  readonly object: string;
  readonly urns: readonly string[];
}

interface Holder {
  readonly urn: string;
  readonly kind: string;
  readonly shared: boolean;
}

/** A resource of the program. */
export interface Declared {
  readonly planned: PlannedStep;
  /** Of its object, tenant and all; undefined for an object that is still to be made. */
  readonly id: string | undefined;
}

/**
 * Finds twins by the claims that the provider too makes while it runs. Here more are found, since two selectors of one
 * device are known to mean the same.
 */
export function twinsOf(draft: Draft, declared: readonly Declared[]): Twins[] {
  const holders = new Map<string, Holder[]>();
  for (const one of declared) {
    const { step, definition } = one.planned;
    for (const { key, shared = false } of claimsOf(draft, one)) {
      const others = holders.get(key) ?? [];
      if (others.some(({ urn }) => urn === step.urn)) continue;
      holders.set(key, [...others, { urn: step.urn, kind: definition.name, shared }]);
    }
  }
  const found = new Map<string, Twins>();
  for (const [key, all] of holders) {
    const kinds = new Set(all.map(({ kind }) => kind));
    if (all.length < 2 || (kinds.size === 1 && all.every(({ shared }) => shared))) continue;
    const urns = all.map(({ urn }) => urn);
    const name = urns.toSorted().join();
    if (!found.has(name)) found.set(name, { object: inWords(draft, key), urns });
  }
  return [...found.values()];
}

function claimsOf(draft: Draft, { planned, id }: Declared): readonly Claim[] {
  const { definition, after } = planned;
  const { identity, inputs: fields } = definition;
  const ofId = id === undefined ? [] : claimsOfId(definition, id);
  if (!identity || !after || identity.fields.some((field) => isHidden(after.inputs[field]))) return ofId;
  const inputs = { ...canonicalInputs(fields, after.inputs) };
  if (fields.tenant) inputs.tenant = draft.estate.tenant;
  // Here the device's uid stands in the id, by whatever selector it was named.
  if (fields.device) inputs.device = id?.split("/")[1] ?? inputs.device;
  return [...identity.ofInputs(inputs), ...ofId];
}

/** A claim's key without the tenant, and with the device's name instead of its uid. */
function inWords({ estate }: Draft, key: string): string {
  const text = key.replace(`${estate.tenant}/`, "").replace(`${estate.tenant} `, "");
  const device = estate.devices.find(({ uid }) => text.includes(uid));
  return device ? text.replace(device.uid, `the device ${device.name}`) : text;
}
