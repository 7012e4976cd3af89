import { GatehouseError, printedError } from "@gatehouse-access/sdk/errors";
import type { dynamic } from "@pulumi/pulumi";
import {
  dynamicValues,
  LOGICAL_ID,
  OPEN_INPUTS,
  ownValues,
  PROVIDER_KEY,
  SECRET,
  SIGNATURE,
  STATE_ID,
} from "../../engineMarks.ts";
import { openInputs, ResourceLifecycle, type Runtime } from "../../lifecycle/lifecycle.ts";
import type { Creator } from "../../lifecycle/runRecord.ts";
import { type ResourceDefinition, UnfinishedError } from "../../resources/definition.ts";
import { hasUnknown } from "../../resources/values.ts";
import type { Lookup } from "../../service/newConnection.ts";

type Values = Record<string, unknown>;

/** What the dynamic providers of one run share. */
export interface DynamicRuntime extends Runtime {
  /** Takes the stack's configuration; an engine calls it before all else. */
  configure(lookup: Lookup): void;
}

/** The dynamic provider of one declarative resource. Its check and diff make no request. */
export function dynamicProvider(
  definition: ResourceDefinition,
  runtime: DynamicRuntime,
): dynamic.ResourceProvider {
  const lifecycle = new ResourceLifecycle(definition, runtime);
  return {
    async configure({ config }) {
      runtime.configure((key) => config.get(key));
    },

    async check(olds: Values, news: Values) {
      const { inputs, failures } = lifecycle.check(logicalId(news), olds, ownValues(news));
      // The reason names the property already, and engines would put it before the reason once more.
      const reasons = failures.map((failure) => ({ property: "", reason: printedError(failure) }));
      return { inputs: { ...inputs, ...dynamicValues(news) }, failures: reasons };
    },

    async diff(id, olds: Values, news: Values) {
      const { changes, replaces } = lifecycle.diff(logicalId(news), id, ownValues(olds), ownValues(news));
      return { changes: changes.length + replaces.length > 0, replaces: [...replaces] };
    },

    async create(inputs: Values) {
      try {
        const made = await lifecycle.create(creatorOf(inputs), ownValues(inputs));
        return { id: made.id, outs: outputsAfter(definition, inputs, made.state) };
      } catch (error) {
        throw error instanceof UnfinishedError
          ? new ResourceInitError(definition, error, inputs)
          : shown(error);
      }
    },

    async update(id, olds: Values, news: Values) {
      const changed = await lifecycle
        .update(logicalId(news), id, ownValues(olds), ownValues(news))
        .catch(throwShown);
      return { outs: outputsAfter(definition, news, changed) };
    },

    async read(id, props: Values = {}) {
      const { [PROVIDER_KEY]: code, [OPEN_INPUTS]: kept } = props;
      const known = kept as Values | undefined;
      const found = await lifecycle.read(logicalId(props), id, ownValues(props), known).catch(throwShown);
      if (!found) return {};
      const { state, inputs } = found;
      // For an import, the engine gives the program's inputs.
      const open = known ?? (inputs && openInputs(definition, ownValues(props)));
      return {
        id: found.id,
        props: outputs(definition, code, state, open),
        // The program's next run gives the other inputs that only dynamic resources have.
        ...(inputs && { inputs: { ...inputs, [PROVIDER_KEY]: code } }),
      };
    },

    async delete(id, props: Values) {
      await lifecycle.delete(logicalId(props), id, ownValues(props)).catch(throwShown);
    },
  };
}

/** Engines show the message of an error and nothing else of it. */
const shown = (cause: unknown): unknown =>
  cause instanceof GatehouseError ? new Error(printedError(cause), { cause }) : cause;

function throwShown(cause: unknown): never {
  throw shown(cause);
}

function logicalId(values: Values): string | undefined {
  const value = values[LOGICAL_ID];
  return typeof value === "string" ? value : undefined;
}

function creatorOf(values: Values): Creator {
  const { [STATE_ID]: state } = values;
  // It is unknown when the run is limited to resources other than the one that holds the state's id.
  const isKnown = typeof state === "string" && !hasUnknown(state);
  return { resource: logicalId(values), state: isKnown ? state : undefined };
}

// The mark by which a provider tells the engines that a value is secret.
const secretMark = (value: unknown) => ({ [SIGNATURE]: SECRET, value });

/** What the engine keeps after an object was written. @param inputs those of the engine */
const outputsAfter = (definition: ResourceDefinition, inputs: Values, state: Readonly<Values>): Values =>
  outputs(definition, inputs[PROVIDER_KEY], state, openInputs(definition, inputs));

// An undefined value would make the engine refuse the outputs after the object was made, and so lose the object.
function outputs(
  definition: ResourceDefinition,
  code: unknown,
  state: Readonly<Values>,
  open: Readonly<Values> | undefined,
): Values {
  const defined = Object.entries(state)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, definition.outputs[name]?.secret ? secretMark(value) : value] as const);
  return { ...Object.fromEntries(defined), ...(open && { [OPEN_INPUTS]: open }), [PROVIDER_KEY]: code };
}

/** An object that was made but not completed, in the form that engines expect. */
class ResourceInitError extends Error {
  readonly id: string;
  readonly properties: Values;
  readonly reasons: string[];

  constructor(definition: ResourceDefinition, failure: UnfinishedError, inputs: Values) {
    super(failure.message);
    this.id = failure.id;
    this.properties = outputsAfter(definition, inputs, failure.state);
    this.reasons = [failure.reason];
  }
}
