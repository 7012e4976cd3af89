import { UNKNOWN } from "../engineMarks.ts";
import type { InputField, ResourceDefinition } from "../resources/definition.ts";
import { canonical, hasUnknown, sameValue } from "../resources/values.ts";

/** One input whose value differs between state and program. */
export interface InputChange {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly replaces: boolean;
}

/**
 * What would change if the program's inputs were applied to the state. No request is made. A value that is not known
 * yet counts as a change, and in an input that replaces as a replacement: a plan must not promise less than may happen.
 */
export function diff(
  definition: ResourceDefinition,
  state: Readonly<Record<string, unknown>>,
  inputs: Readonly<Record<string, unknown>>,
  now: Date = new Date(),
): InputChange[] {
  const stale = new Map(
    definition.stale?.(state, inputs, now).map(({ field, replaces }) => [field, replaces] as const),
  );
  return Object.entries(definition.inputs)
    .filter(
      ([name, field]) => !field.transient && (stale.has(name) || differs(name, field, state, inputs[name])),
    )
    .map(([name, field]) => ({
      field: name,
      // States of older versions lack members that were added since.
      before: canonical(field, state[name]),
      after: canonical(field, inputs[name]),
      replaces: stale.get(name) ?? field.replaces,
    }));
}

/**
 * The inputs with the state's value where the program's means the same in other words. An update gets these, and its
 * preview promises them: a value stays as the state has it until it means something else.
 */
export function settled(
  { inputs: fields }: Pick<ResourceDefinition, "inputs">,
  state: Readonly<Record<string, unknown>>,
  inputs: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const entries = Object.entries(inputs).map(([name, value]) => {
    const field = fields[name];
    const isSame = field && !field.transient && value !== undefined && state[name] !== undefined;
    return [name, isSame && !differs(name, field, state, value) ? state[name] : value] as const;
  });
  return Object.fromEntries(entries);
}

function differs(
  name: string,
  field: InputField,
  state: Readonly<Record<string, unknown>>,
  value: unknown,
): boolean {
  if (hasUnknown(value)) return true;
  const after = canonical(field, value);
  // It is left out and has no default: the service's own choice stays.
  if (after === undefined) return false;
  return !sameValue(field, state[name], after) && !(field.sameAs?.(state, after) ?? false);
}

type Values = Readonly<Record<string, unknown>>;

/** The state that a create will lead to, as far as it is known before. */
export function plannedCreate(definition: ResourceDefinition, inputs: Values): Record<string, unknown> {
  return { ...declared(definition, inputs, {}), ...each(Object.keys(definition.outputs), () => UNKNOWN) };
}

/** The state that an update will lead to, as far as it is known before. */
export function plannedUpdate(
  definition: ResourceDefinition,
  state: Values,
  inputs: Values,
): Record<string, unknown> {
  return {
    ...declared(definition, settled(definition, state, inputs), state),
    ...each(Object.keys(definition.outputs), () => UNKNOWN),
    ...lastingOutputs(definition, state),
  };
}

/** The outputs that no update changes. One that the service has not said yet is none of them. */
export function lastingOutputs({ outputs }: ResourceDefinition, state: Values): Record<string, unknown> {
  const names = Object.entries(outputs).flatMap(([name, { volatile, mutable }]) => {
    const isSaid = state[name] !== undefined && !(volatile && state[name] === "");
    return isSaid && !mutable?.(state) ? [name] : [];
  });
  return each(names, (name) => state[name]);
}

/** The inputs of the state to come: the service decides those that are left out, and keeps what it decided before. */
function declared({ inputs: fields }: ResourceDefinition, inputs: Values, state: Values): Values {
  const lasting = Object.keys(fields).filter((name) => !fields[name]?.transient);
  return each(lasting, (name) => {
    const value = inputs[name] ?? state[name];
    return value === undefined || hasUnknown(value) ? UNKNOWN : value;
  });
}

const each = (names: readonly string[], of: (name: string) => unknown): Record<string, unknown> =>
  Object.fromEntries(names.map((name) => [name, of(name)]));
