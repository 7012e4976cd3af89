import { isNotFound } from "@gatehouse-access/sdk";
import type { dynamic } from "@pulumi/pulumi";
import { check } from "../resources/check.ts";
import { type Existing, PartialFailure, type ResourceDefinition } from "../resources/definition.ts";
import { diff } from "../resources/diff.ts";
import { canonicalInputs, sameValue } from "../resources/values.ts";
import { configure, connection } from "./session.ts";

type Values = Record<string, unknown>;

const PROVIDER = "__provider";

/** The engine's view of one declarative resource. Check and diff make no request. */
export function dynamicProvider(definition: ResourceDefinition): dynamic.ResourceProvider {
  return {
    async configure({ config }) {
      configure((key) => config.get(key));
    },

    async check(_olds: Values, news: Values) {
      const { [PROVIDER]: provider, ...given } = news;
      const { inputs, failures } = check(definition, given);
      return { inputs: { ...inputs, [PROVIDER]: provider }, failures: [...failures] };
    },

    async diff(_id, olds: Values, news: Values) {
      const changes = diff(definition, olds, news);
      const replaces = changes.filter((change) => change.replaces).map((change) => change.field);
      return { changes: changes.length > 0, replaces };
    },

    async create(inputs: Values) {
      const made = await attempt(inputs, () => definition.create(connection(), withoutProvider(inputs)));
      return { id: made.id, outs: outputs(inputs, made.state) };
    },

    async update(id, olds: Values, news: Values) {
      const state = withoutProvider(olds);
      const changed = await definition.update(connection(), id, state, withoutProvider(news));
      return { outs: outputs(news, changed) };
    },

    async read(id, props: Values = {}) {
      const state = withoutProvider(props);
      const found = await goneIsUndefined(() => definition.read(connection(), id, state));
      if (!found) return {};
      const kept = keepVolatile(definition, state, found);
      // Inputs are what a program said, and only an import has none; elsewhere drift shows in the outputs.
      const inputs = Object.keys(state).length === 0 ? inputsOf(definition, props, kept.state) : undefined;
      return { id: kept.id, props: outputs(props, kept.state), ...(inputs && { inputs }) };
    },

    async delete(id, props: Values) {
      await goneIsUndefined(() => definition.delete(connection(), id, withoutProvider(props)));
    },
  };
}

function withoutProvider(values: Values): Values {
  const { [PROVIDER]: _provider, ...rest } = values;
  return rest;
}

// The engine refuses undefined in outputs only after the object was made, which would lose it.
function outputs(from: Values, state: Readonly<Values>): Values {
  const defined = Object.entries(state).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(defined), [PROVIDER]: from[PROVIDER] };
}

function inputsOf(definition: ResourceDefinition, props: Values, state: Readonly<Values>): Values {
  return { ...canonicalInputs(definition.inputs, state), [PROVIDER]: props[PROVIDER] };
}

/** An object that somebody else removed is gone: nothing is left to read or to delete. */
async function goneIsUndefined<T>(step: () => Promise<T>): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Counters that move by themselves are no drift: where nothing else changed, the state keeps its values. */
function keepVolatile(
  definition: ResourceDefinition,
  before: Values,
  found: Existing<Values>,
): Existing<Values> {
  const inputsSame = Object.entries(definition.inputs).every(([name, field]) =>
    sameValue(field, before[name], found.state[name]),
  );
  if (!inputsSame) return found;
  const volatile = Object.entries(definition.outputs).filter(
    ([name, field]) => field.volatile && before[name] !== undefined,
  );
  const kept = volatile.map(([name]) => [name, before[name]] as const);
  return { id: found.id, state: { ...found.state, ...Object.fromEntries(kept) } };
}

/** How the engine wants to hear of an object that was made but not completed. */
class ResourceInitError extends Error {
  readonly id: string;
  readonly properties: Values;
  readonly reasons: string[];

  constructor(failure: PartialFailure, inputs: Values) {
    super(failure.message);
    this.id = failure.id;
    this.properties = outputs(inputs, failure.state);
    this.reasons = [failure.reason];
  }
}

async function attempt<T>(inputs: Values, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw error instanceof PartialFailure ? new ResourceInitError(error, inputs) : error;
  }
}
