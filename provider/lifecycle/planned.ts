import type { ResourceDefinition } from "../resources/definition.ts";
import { hasUnknown } from "../resources/values.ts";
import { UNKNOWN } from "../valueMarks.ts";
import { settled } from "./diff.ts";

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
