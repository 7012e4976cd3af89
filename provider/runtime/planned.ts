import type { ResourceDefinition } from "../resources/definition.ts";
import { hasUnknown } from "../resources/values.ts";
import { UNKNOWN } from "../valueMarks.ts";

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
  const outputs = Object.entries(definition.outputs).map(([name, { volatile, mutable }]) => [
    name,
    volatile || mutable ? UNKNOWN : (state[name] ?? UNKNOWN),
  ]);
  return { ...declared(definition, inputs, state), ...Object.fromEntries(outputs) };
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
