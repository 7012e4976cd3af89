import { GatehouseError } from "@gatehouse-access/sdk/errors";
import type { dynamic } from "@pulumi/pulumi";
import {
  DECLARER,
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
import type { ResourceDefinition } from "../../model/definition.ts";
import { secretsOf } from "../../model/fields.ts";
import { UnfinishedError } from "../../model/unfinishedError.ts";
import { hasUnknown } from "../../model/values.ts";
import { engineText } from "../../resourceError.ts";
import type { Lookup } from "../../service/newConnection.ts";
import type { Values } from "../../values.ts";

/** The data that the dynamic providers of one run share. */
export interface DynamicRuntime extends Runtime {
  /** Sets the stack's configuration. Engines call this function before all other functions. */
  configure(lookup: Lookup): void;
}

/** Returns the dynamic provider of a declarative resource. Its function `diff` sends no request. */
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
      const { inputs, failures } = await lifecycle
        .checkOnServer(logicalId(news), olds, ownValues(news))
        .catch(throwPrintable);
      // The `property` is empty, because the reason already contains the name of the input. With a property, engines
      // would print the name twice.
      const reasons = failures.map((failure) => ({ property: "", reason: engineText(failure) }));
      return { inputs: { ...inputs, ...dynamicValues(news) }, failures: reasons };
    },

    async diff(id, olds: Values, news: Values) {
      const compared = lifecycle.diff(logicalId(news), id, ownValues(olds), ownValues(news), {
        declarer: olds[DECLARER],
      });
      const { changes, replaces, claims, deleteBeforeReplace } = compared;
      return {
        changes: claims || changes.length + replaces.length > 0,
        replaces: [...replaces],
        deleteBeforeReplace,
      };
    },

    async create(inputs: Values) {
      try {
        const created = await lifecycle.create(creatorOf(inputs), ownValues(inputs));
        return { id: created.id, outs: outputsAfter(lifecycle, inputs, created.state) };
      } catch (error) {
        throw error instanceof UnfinishedError
          ? new ResourceInitError(lifecycle, error, inputs)
          : printable(error);
      }
    },

    async update(id, olds: Values, news: Values) {
      const changed = await lifecycle
        .update(logicalId(news), id, ownValues(olds), ownValues(news), { declarer: olds[DECLARER] })
        .catch(throwPrintable);
      return { outs: outputsAfter(lifecycle, news, changed) };
    },

    async read(id, props: Values = {}) {
      const { [PROVIDER_KEY]: code, [OPEN_INPUTS]: kept, [DECLARER]: declarer } = props;
      const known = kept as Values | undefined;
      const found = await lifecycle.read(logicalId(props), id, ownValues(props), known).catch(throwPrintable);
      if (!found) return {};
      const { state, inputs } = found;
      // `open` contains the inputs that the program sets. The state of an imported resource does not contain them, but
      // `props` then contains the program's inputs.
      const open = known ?? (inputs && openInputs(definition, ownValues(props)));
      return {
        id: found.id,
        props: outputs(definition, code, state, open, declarer),
        // Omits the other inputs that Pulumi classes add. The next run of the program sets them.
        ...(inputs && { inputs: { ...inputs, [PROVIDER_KEY]: code } }),
      };
    },

    async delete(id, props: Values) {
      const { [DECLARER]: declarer } = props;
      await lifecycle.delete(logicalId(props), id, ownValues(props), { declarer }).catch(throwPrintable);
    },
  };
}

/**
 * Converts an error of this project to a plain error. Engines print only the message of an error, so the message
 * contains the error code.
 */
const printable = (cause: unknown): unknown =>
  cause instanceof GatehouseError ? new Error(engineText(cause), { cause }) : cause;

function throwPrintable(cause: unknown): never {
  throw printable(cause);
}

function logicalId(values: Values): string | undefined {
  const value = values[LOGICAL_ID];
  return typeof value === "string" ? value : undefined;
}

function creatorOf(values: Values): Creator {
  const { [STATE_ID]: state } = values;
  // If a targeted run excludes the resource `StateIdentity`, the id of the state is unknown.
  const isKnown = typeof state === "string" && !hasUnknown(state);
  return { resource: logicalId(values), state: isKnown ? state : undefined };
}

// Marks a value as secret in messages to the engine.
const secretMark = (value: unknown) => ({ [SIGNATURE]: SECRET, value });

/**
 * Returns the outputs that the engine stores after a write.
 * @param inputs the inputs that the engine passed
 */
function outputsAfter(lifecycle: ResourceLifecycle, inputs: Values, state: Readonly<Values>): Values {
  const { definition } = lifecycle;
  const declarer = lifecycle.declarer(logicalId(inputs));
  return outputs(definition, inputs[PROVIDER_KEY], state, openInputs(definition, inputs), declarer);
}

// Returns the outputs for the engine. Omits undefined values: an engine would reject them after the create, and the
// created object would be missing in the state.
function outputs(
  definition: ResourceDefinition,
  code: unknown,
  state: Readonly<Values>,
  open: Readonly<Values> | undefined,
  declarer: unknown,
): Values {
  const secrets = secretsOf(definition);
  const defined = Object.entries(state)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, secrets.includes(name) ? secretMark(value) : value] as const);
  return {
    ...Object.fromEntries(defined),
    ...(open && { [OPEN_INPUTS]: open }),
    ...(declarer !== undefined && { [DECLARER]: declarer }),
    [PROVIDER_KEY]: code,
  };
}

/**
 * Thrown if an object was created, but a later step of the create failed. The error has the form that Pulumi's engines
 * expect.
 */
class ResourceInitError extends Error {
  readonly id: string;
  readonly properties: Values;
  readonly reasons: string[];

  constructor(lifecycle: ResourceLifecycle, failure: UnfinishedError, inputs: Values) {
    super(failure.message);
    this.id = failure.id;
    this.properties = outputsAfter(lifecycle, inputs, failure.state);
    this.reasons = [failure.reason];
  }
}
