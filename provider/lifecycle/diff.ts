import { UNKNOWN } from "../engineMarks.ts";
import type { ResourceDefinition } from "../model/definition.ts";
import type { InputField } from "../model/fields.ts";
import { canonical, hasUnknown, sameValue } from "../model/values.ts";
import type { Message } from "../resourceError.ts";
import type { Values } from "../values.ts";

/** An input whose value differs between the state and the program. */
export interface InputChange {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly replaces: boolean;
  /** The reason for a change that the program did not make, if the resource type provides a reason. */
  readonly reason?: Message | undefined;
}

/**
 * Returns the inputs that differ between the state and the program. Sends no request. An unknown value is treated as a
 * change, so that a plan never contains fewer changes than the run makes. If the input can only change by a
 * replacement, an unknown value is treated as a replacement.
 */
export function diff(
  definition: ResourceDefinition,
  state: Values,
  inputs: Values,
  now: Date = new Date(),
): InputChange[] {
  const stale = new Map(definition.stale?.(state, inputs, now).map((stale) => [stale.field, stale] as const));
  return Object.entries(definition.inputs)
    .filter(
      ([name, field]) => !field.transient && (stale.has(name) || differs(name, field, state, inputs[name])),
    )
    .map(([name, field]) => ({
      field: name,
      // If an older provider version wrote the state, the state lacks nested properties that newer versions added. The
      // canonical form contains the defaults of these properties.
      before: canonical(field, state[name]),
      after: canonical(field, inputs[name]),
      replaces: stale.get(name)?.replaces ?? field.replaces,
      reason: stale.get(name)?.reason,
    }));
}

/**
 * Returns the inputs to use for an update and its preview. If the meaning of a value did not change, keeps the notation
 * of the value in the state.
 */
export function settled(
  { inputs: fields }: Pick<ResourceDefinition, "inputs">,
  state: Values,
  inputs: Values,
): Record<string, unknown> {
  const entries = Object.entries(inputs).map(([name, value]) => {
    const field = fields[name];
    const isSame = field && !field.transient && value !== undefined && state[name] !== undefined;
    return [name, isSame && !differs(name, field, state, value) ? state[name] : value] as const;
  });
  return Object.fromEntries(entries);
}

function differs(name: string, field: InputField, state: Values, value: unknown): boolean {
  if (hasUnknown(value)) return true;
  const after = canonical(field, value);
  // An omitted input without a default keeps the value that the service chose.
  if (after === undefined) return false;
  return !sameValue(field, state[name], after) && !(field.sameAs?.(state, after) ?? false);
}

/** Returns the planned state after a create. All outputs are unknown. */
export function plannedCreate(definition: ResourceDefinition, inputs: Values): Record<string, unknown> {
  return { ...declared(definition, inputs, {}), ...each(Object.keys(definition.outputs), () => UNKNOWN) };
}

/** Returns the planned state after an update. Outputs that the update may change are unknown. */
export function plannedUpdate(
  definition: ResourceDefinition,
  state: Values,
  inputs: Values,
): Record<string, unknown> {
  return {
    ...declared(definition, settled(definition, state, inputs), state),
    ...each(Object.keys(definition.outputs), () => UNKNOWN),
    ...lastingOutputs(definition, state, inputs),
  };
}

/** Returns the outputs that an update to these inputs does not change. Omits outputs that the service has not returned. */
export function lastingOutputs({ outputs }: ResourceDefinition, state: Values, inputs: Values): Values {
  const names = Object.entries(outputs).flatMap(([name, { volatile, mutable }]) => {
    const isKnown = state[name] !== undefined && !(volatile && state[name] === "");
    return isKnown && !mutable?.(state, inputs) ? [name] : [];
  });
  return each(names, (name) => state[name]);
}

/**
 * Returns the inputs of the planned state. An omitted input keeps its value in the state. If the state has no value,
 * the input is unknown, because the service chooses the value.
 */
function declared({ inputs: fields }: ResourceDefinition, inputs: Values, state: Values): Values {
  const lasting = Object.keys(fields).filter((name) => !fields[name]?.transient);
  return each(lasting, (name) => {
    const value = inputs[name] ?? state[name];
    return value === undefined || hasUnknown(value) ? UNKNOWN : value;
  });
}

const each = (names: readonly string[], of: (name: string) => unknown): Record<string, unknown> =>
  Object.fromEntries(names.map((name) => [name, of(name)]));
