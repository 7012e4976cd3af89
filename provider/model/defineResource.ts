import { z } from "zod";
import type { Values } from "../values.ts";
import type { ResourceDefinition } from "./definition.ts";
import { type Inputs, type Outputs, optional } from "./fields.ts";

/**
 * A layer: a feature that several resource types share, such as the expiry of access. It adds inputs to the definition
 * of a resource type, and wraps the functions of the definition.
 */
export type Layer = (definition: ResourceDefinition) => ResourceDefinition;

/**
 * Defines a resource type. A resource type that can find existing objects gets the input `adopt`. The result has the
 * general type of all definitions, because generic code calls its functions with the values of any resource.
 * @param layers the layers to apply, in order. A call reaches the last layer first
 */
export function defineResource<I extends Inputs, O extends Outputs>({
  layers = [],
  ...own
}: ResourceDefinition<I, O> & { readonly layers?: readonly Layer[] }): ResourceDefinition {
  const inputs = own.find ? { ...own.inputs, adopt: adoptInput } : own.inputs;
  const defined = { ...own, inputs } as unknown as ResourceDefinition;
  return layers.reduce((inner, layer) => layer(inner), defined);
}

/**
 * Returns a definition that adds values to each state.
 * @param complete returns the state of an object with the added values. `known` contains the values in the program or
 *   in the previous state, and is empty for a listed object
 */
export function withStates(
  definition: ResourceDefinition,
  complete: (state: Values, known: Values) => Values,
): ResourceDefinition {
  const { find, list, create, read, update } = definition;
  const completed = <E extends { readonly state: Values }>(existing: E, known: Values): E => ({
    ...existing,
    state: complete(existing.state, known),
  });
  return {
    ...definition,
    ...(find && {
      async find(connection, inputs, isOthers) {
        const found = await find(connection, inputs, isOthers);
        return found && completed(found, inputs);
      },
    }),
    ...(list && {
      list: async (connection, tenant) =>
        (await list(connection, tenant)).map((object) => completed(object, {})),
    }),
    create: async (connection, inputs, origin) => completed(await create(connection, inputs, origin), inputs),
    async read(connection, id, state) {
      const found = await read(connection, id, state);
      return found && completed(found, state);
    },
    update: async (connection, id, state, inputs) =>
      complete(await update(connection, id, state, inputs), { ...state, ...inputs }),
  };
}

/** The value of the input `adopt`. */
export type Adopt = boolean | "overwrite" | undefined;

const adoptInput = optional(z.union([z.boolean(), z.literal("overwrite")]), {
  description:
    'Whether to adopt an existing object. `true` adopts the object if every input is equal. `"overwrite"` adopts the object and updates it to match the inputs. By default, an existing object is an error. Changing only `adopt` does not change the resource.',
  transient: true,
});
