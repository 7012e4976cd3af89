import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import type { MethodDefinition } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import type { ResourceDefinition } from "../../../provider/model/definition.ts";
import { pluginServices } from "../../../provider/providers/terraform/protocol.ts";
import { TerraformProvider } from "../../../provider/providers/terraform/terraformProvider.ts";
import { definitions } from "../../../provider/resources/index.ts";
import { snake, typeOf } from "../../terraform/support/configurations.ts";
import {
  type CreatedObject,
  type FrontEnd,
  type FrontEndOptions,
  type ResourceName,
  StateChangedError,
} from "./frontEnd.ts";
import {
  type Attribute,
  attributeOf,
  decoded,
  encoded,
  given,
  mustBeKnown,
  mustFollow,
  mustKeep,
  proposed,
  type Row,
  rowOf,
  type SchemaAttribute,
  UNKNOWN,
  valuesOf,
  type Wire,
} from "./terraformValues.ts";

type Values = Record<string, unknown>;

interface Diagnostic {
  readonly severity: number;
  readonly detail: string;
  readonly attribute?: Path;
}

interface Path {
  readonly steps: readonly { readonly attributeName: string }[];
}

interface Schema {
  readonly block: { readonly attributes: readonly SchemaAttribute[] };
}

/** All fields that a response of the provider can have. Each response has some of these fields. */
interface ProviderResponse {
  readonly diagnostics: readonly Diagnostic[];
  readonly provider: Schema;
  readonly resourceSchemas: Readonly<Record<string, Schema>>;
  readonly upgradedState?: Wire;
  readonly plannedState?: Wire;
  readonly plannedPrivate: Uint8Array;
  readonly requiresReplace: readonly Path[];
  readonly newState?: Wire;
  readonly importedResources: readonly { readonly typeName: string; readonly state?: Wire }[];
}

/** A resource type, with its definition and its schema. */
interface Kind {
  readonly definition: ResourceDefinition;
  readonly typeName: string;
  readonly attributes: readonly Attribute[];
}

/** The provider's response to a request for a plan of one resource. */
interface Plan {
  readonly planned: Row;
  /** Names of the attributes whose change requires a replacement. */
  readonly replaces: readonly string[];
  readonly private: Uint8Array | undefined;
}

/** A change that the provider planned and has not yet applied. */
interface Change {
  readonly prior: Row | undefined;
  readonly planned: Row;
  /** True if the planned update creates a new object. */
  readonly isRecreated: boolean;
  /** True if the user requested the replacement of the object. */
  readonly isRequested: boolean;
}

const ERROR = 1;

/** The state field that marks an object as tainted, because its create failed. The next run replaces the object. */
const TAINTED = "tainted";

/** Encodes and decodes messages with Terraform's own description of the protocol. */
const protocol = protobuf.loadSync(fileURLToPath(new URL("tfplugin6.proto", import.meta.url))).resolveAll();
const calls = protocol.lookupService("tfplugin6.Provider").methods;

const providersSide = pluginServices()["tfplugin6.Provider"] as Readonly<
  Record<string, MethodDefinition<object, object>>
>;

/** Represents one process of the provider. Encodes its requests and responses as bytes. */
class Provider {
  readonly #methods: Readonly<Record<string, (request: never) => object | Promise<object>>>;

  constructor(env: Readonly<Record<string, string>>) {
    this.#methods = new TerraformProvider(env).methods();
  }

  async call(method: string, request: object): Promise<ProviderResponse> {
    const [type, provider, handler] = [calls[method], providersSide[method], this.#methods[method]];
    const { resolvedRequestType: sent, resolvedResponseType: received } = type ?? {};
    if (!sent || !received || !provider || !handler) throw new Error(`no method ${method}`);
    const problem = sent.verify(request);
    if (problem) throw new Error(`${method}: ${problem}`);
    const bytes = Buffer.from(sent.encode(request).finish());
    const response = await handler(provider.requestDeserialize(bytes) as never);
    const message = received.decode(provider.responseSerialize(response));
    return received.toObject(message, { defaults: true, longs: Number }) as ProviderResponse;
  }
}

/** The provider's schemas. All processes return the same schemas. */
interface ProviderSchemas {
  readonly provider: readonly Attribute[];
  readonly kinds: ReadonlyMap<string, Kind>;
}

let knownSchemas: ProviderSchemas | undefined;

async function schemasOf(provider: Provider): Promise<ProviderSchemas> {
  if (knownSchemas) return knownSchemas;
  const { provider: own, resourceSchemas } = await provider.call("GetProviderSchema", {});
  const kinds = definitions.map((definition): [string, Kind] => {
    const typeName = typeOf(definition);
    const attributes = resourceSchemas[typeName]?.block.attributes.map(attributeOf) ?? [];
    const names = attributes.map(({ name }) => name).sort();
    const expected = attributeNames(definition).sort();
    if (!isDeepStrictEqual(names, expected)) throw new Error(`${typeName} has ${names}, and not ${expected}`);
    return [definition.name, { definition, typeName, attributes }];
  });
  knownSchemas = { provider: own.block.attributes.map(attributeOf), kinds: new Map(kinds) };
  return knownSchemas;
}

/**
 * Returns the attribute names that the resource's schema must have. Terraform states are in plaintext, so no attribute
 * may store a secret: for a secret that the user chooses, the schema has a write-only attribute, and an attribute for
 * the secret's version.
 */
const attributeNames = ({ inputs, outputs }: ResourceDefinition): string[] => [
  "id",
  ...Object.entries(inputs).flatMap(([name, { secret }]) =>
    secret ? [`${snake(name)}_wo`, `${snake(name)}_wo_version`] : [snake(name)],
  ),
  ...Object.entries(outputs).flatMap(([name, { secret, choice }]) => {
    if (!secret) return [snake(name)];
    return choice ? [`${snake(name)}_wo`, `${snake(name)}_wo_version`] : [];
  }),
];

/**
 * Calls the Terraform provider with its protocol, in Terraform's order: one process plans, another one plans again and
 * applies, and a third one plans the applied state. Each step checks Terraform's requirements for providers, and each
 * apply must be followed by an empty plan.
 *
 * Terraform performs a replacement: it destroys the old object before it creates the new one, unless the provider does
 * both in one update. Each step has new secrets, and the outputs contain them in addition to the state.
 */
export async function terraformFrontEnd({ env, replace, force = [] }: FrontEndOptions): Promise<FrontEnd> {
  const [planning, applying, next] = [new Provider(env), new Provider(env), new Provider(env)];
  const { provider: settings, kinds } = await schemasOf(planning);
  const configure = (provider: Provider) =>
    provider
      .call("ConfigureProvider", { terraformVersion: "1.11.0", config: encoded(rowOf(settings, {})) })
      .then(({ diagnostics }) => {
        for (const { severity, detail } of diagnostics) if (severity === ERROR) throw new Error(detail);
      });
  const all = [planning, applying, next];
  await Promise.all(all.map(configure));

  const changes = new Map<string, Change>();
  /** Objects that Terraform destroys before it creates the new objects. */
  const olds = new Map<string, { readonly prior: Row; readonly private: Uint8Array | undefined }>();
  const destroyed = new Set<string>();

  const keyOf = ({ type, name }: ResourceName) => `${type} ${name}`;
  const kindOf = ({ type }: ResourceName): Kind => {
    const kind = kinds.get(type);
    if (!kind) throw new Error(`no resource ${type}`);
    return kind;
  };

  /** Returns the configuration of a resource. Each call returns new secrets, like ephemeral values. */
  const configOf = (kind: Kind, inputs: Values, prior?: Row, isRequested = false): Row => {
    const { attributes, definition } = kind;
    const isSecret = (name: string) => definition.inputs[name]?.secret ?? false;
    const plain = Object.fromEntries(Object.entries(inputs).filter(([name]) => !isSecret(name)));
    const row: Record<string, unknown> = {
      ...(given({ kind: "object", members: attributes }, plain) as Row),
    };
    for (const { name, writeOnly } of attributes) {
      if (!writeOnly) continue;
      const version = `${name}_version`;
      const input = Object.keys(definition.inputs).find((one) => `${snake(one)}_wo` === name);
      if (input) {
        // A user who changes a secret also changes its version.
        const secret = inputs[input] ?? null;
        row[name] = secret;
        row[version] = secret === null ? null : Buffer.from(String(secret)).readUIntBE(0, 4);
        continue;
      }
      row[name] = randomUUID();
      row[version] = isRequested ? Number(prior?.[version] ?? 0) + 1 : (prior?.[version] ?? null);
    }
    return row;
  };

  /** Prints the warnings in a response. Returns the errors in the same form as the other front ends. */
  const errorsIn = (kind: Kind, { diagnostics }: ProviderResponse, config: Row = {}): string[] => {
    const secrets = kind.attributes.flatMap(({ name, writeOnly }) => (writeOnly ? [config[name]] : []));
    const printed = JSON.stringify(diagnostics);
    if (secrets.some((secret) => typeof secret === "string" && printed.includes(secret))) {
      throw new Error(`a secret is in ${printed}`);
    }
    for (const { severity, detail } of diagnostics) if (severity !== ERROR) console.log(detail);
    return diagnostics
      .filter(({ severity }) => severity === ERROR)
      .map((one) => withDefinitionNames(kind.definition, one));
  };
  const throwErrors = (kind: Kind, response: ProviderResponse, config?: Row) => {
    const errors = errorsIn(kind, response, config);
    if (errors.length > 0) throw new Error(errors.join("; "));
  };

  /** Returns the state of an object. The provider upgrades the state from JSON. */
  const priorOf = async (kind: Kind, { id, outputs }: CreatedObject): Promise<Row> => {
    const { typeName, attributes } = kind;
    const row = { ...rowOf(attributes, outputs), id };
    const json = Buffer.from(JSON.stringify(row));
    const answer = await planning.call("UpgradeResourceState", { typeName, version: 0, rawState: { json } });
    throwErrors(kind, answer);
    const upgraded = decoded(attributes, answer.upgradedState);
    mustKeep(row, upgraded, typeName);
    return upgraded as Row;
  };

  const planOn = async (
    provider: Provider,
    kind: Kind,
    config: Row,
    prior: Row | undefined,
    priorPrivate?: Uint8Array,
  ): Promise<Plan | readonly string[]> => {
    const { typeName, attributes } = kind;
    const answer = await provider.call("PlanResourceChange", {
      typeName,
      priorPrivate,
      priorState: encoded(prior),
      config: encoded(config),
      proposedNewState: encoded(proposed(attributes, prior, config)),
    });
    const errors = errorsIn(kind, answer, config);
    if (errors.length > 0) return errors;
    const planned = decoded(attributes, answer.plannedState);
    if (!planned) throw new Error(`${typeName}: planned to be destroyed`);
    mustFollow(attributes, { prior, config, planned });
    const named = answer.requiresReplace.map(({ steps }) => String(steps[0]?.attributeName));
    const replaces = named.filter(
      (name) => planned[name] === UNKNOWN || !isDeepStrictEqual(planned[name], prior?.[name]),
    );
    return { planned, replaces, private: answer.plannedPrivate };
  };
  const mustPlanOn = async (...args: Parameters<typeof planOn>): Promise<Plan> => {
    const plan = await planOn(...args);
    if ("planned" in plan) return plan;
    throw new Error(plan.join("; "));
  };

  /** Applies a planned change. The process that applies the change first plans it again. */
  const apply = async (
    resource: ResourceName,
    inputs: Values,
    change: Change,
    before: Values,
  ): Promise<CreatedObject> => {
    const kind = kindOf(resource);
    const { typeName, attributes } = kind;
    const { prior, isRequested, isRecreated } = change;
    const config = configOf(kind, inputs, prior, isRequested);
    const { planned } = await mustPlanOn(applying, kind, config, prior);
    mustKeep(change.planned, planned, typeName);
    const answer = await applying.call("ApplyResourceChange", {
      typeName,
      priorState: encoded(prior),
      plannedState: encoded(planned),
      config: encoded(config),
    });
    const row = decoded(attributes, answer.newState);
    if (row) mustBeKnown(attributes, row);
    const secrets = !prior || isRecreated ? config : undefined;
    const errors = errorsIn(kind, answer, config);
    if (errors.length > 0) {
      const failure = errors.join("; ");
      // After a failed create, the state contains the object as tainted.
      if (!prior && row) {
        throw new StateChangedError(failure, stateOf(kind, row, { [TAINTED]: true }, secrets));
      }
      if (prior && !row) throw new StateChangedError(failure, undefined);
      if (!isDeepStrictEqual(row, prior)) {
        throw new StateChangedError(failure, row && stateOf(kind, row, before, secrets));
      }
      throw new Error(failure);
    }
    if (!row) throw new Error(`${typeName}: nothing is left of it after an apply`);
    mustKeep(planned, row, typeName);
    const { planned: later } = await mustPlanOn(next, kind, configOf(kind, inputs, row), row);
    mustKeep(later, row, `${typeName} after an apply`);
    mustKeep(row, later, `${typeName} after an apply`);
    return stateOf(kind, row, before, secrets);
  };

  /** Destroys an object. Terraform requests a plan for the destruction first, except for a replacement. */
  const destroy = async (kind: Kind, prior: Row, isPlanned: boolean): Promise<void> => {
    const { typeName, attributes } = kind;
    const [nothing, priorState] = [encoded(undefined), encoded(prior)];
    const request = { typeName, priorState, config: nothing };
    if (isPlanned) {
      const planned = await planning.call("PlanResourceChange", { ...request, proposedNewState: nothing });
      throwErrors(kind, planned);
      if (decoded(attributes, planned.plannedState))
        throw new Error(`${typeName}: planned not to be destroyed`);
    }
    const answer = await applying.call("ApplyResourceChange", { ...request, plannedState: nothing });
    throwErrors(kind, answer);
    if (decoded(attributes, answer.newState)) throw new Error(`${typeName}: something is left of it`);
  };

  return {
    async check(resource, state, news) {
      const kind = kindOf(resource);
      const key = keyOf(resource);
      const config = configOf(kind, news);
      const clientCapabilities = { writeOnlyAttributesAllowed: true };
      const validation = { typeName: kind.typeName, config: encoded(config), clientCapabilities };
      const failures = errorsIn(kind, await planning.call("ValidateResourceConfig", validation), config);
      const isKept = Object.keys(state).length > 0 || changes.get(key)?.isRecreated;
      if (failures.length > 0 || isKept) return { inputs: news, failures };
      const plan = await planOn(planning, kind, config, undefined, olds.get(key)?.private);
      if (!("planned" in plan)) return { inputs: news, failures: plan };
      changes.set(key, { prior: undefined, planned: plan.planned, isRecreated: false, isRequested: false });
      return { inputs: news, failures };
    },
    async diff(resource, id, outputs, inputs) {
      const kind = kindOf(resource);
      const key = keyOf(resource);
      const prior = await priorOf(kind, { id, outputs });
      if (outputs[TAINTED]) {
        olds.set(key, { prior, private: undefined });
        return { replaces: ["id"] };
      }
      const isForced = force.includes(resource.name);
      const isRequested = replace.includes(resource.name);
      const requested = isRequested || isForced ? ["id"] : [];
      const config = configOf(kind, inputs, prior, isRequested);
      const { planned, replaces, ...plan } = await mustPlanOn(planning, kind, config, prior);
      const isRecreated = planned.id === UNKNOWN && !isForced;
      if (replaces.length + requested.length > 0 && !isRecreated) {
        olds.set(key, { prior, private: plan.private });
        return { replaces: [...replaces.map((name) => inputNamed(kind.definition, name)), ...requested] };
      }
      if (!isDeepStrictEqual(planned, prior)) {
        changes.set(key, { prior, planned, isRecreated, isRequested });
        if (!isRecreated) return { replaces: [] };
        const reasons = [...replacedBy(kind, prior, planned), ...requested];
        return { replaces: reasons.length > 0 ? reasons : ["id"] };
      }
      // While Terraform applies changes, it also plans the unchanged resources again.
      const again = await mustPlanOn(applying, kind, configOf(kind, inputs, prior), prior);
      mustKeep(planned, again.planned, kind.typeName);
      return undefined;
    },
    async create(resource, inputs) {
      const kind = kindOf(resource);
      const key = keyOf(resource);
      const change = changes.get(key);
      if (!change) throw new Error(`${key}: was not planned`);
      const old = olds.get(key);
      if (change.isRecreated || !old) {
        const created = await apply(resource, inputs, change, {});
        if (change.isRecreated) destroyed.add(key);
        return created;
      }
      await destroy(kind, old.prior, false);
      destroyed.add(key);
      return apply(resource, inputs, change, {}).catch((error: unknown) => {
        if (error instanceof StateChangedError) throw error;
        throw new StateChangedError(error instanceof Error ? error.message : String(error), undefined);
      });
    },
    async update(resource, _id, outputs, inputs) {
      const change = changes.get(keyOf(resource));
      if (!change) throw new Error(`${keyOf(resource)}: was not planned`);
      return (await apply(resource, inputs, change, outputs)).outputs;
    },
    async read(resource, id, outputs) {
      const kind = kindOf(resource);
      const { typeName, attributes } = kind;
      const isImport = Object.keys(outputs).length === 0;
      const current = isImport ? await importOf(kind, id) : await priorOf(kind, { id, outputs });
      const answer = await planning.call("ReadResource", { typeName, currentState: encoded(current) });
      throwErrors(kind, answer);
      const row = decoded(attributes, answer.newState);
      if (row) mustBeKnown(attributes, row);
      return row && stateOf(kind, row, outputs);
    },
    async delete(resource, id, outputs) {
      const kind = kindOf(resource);
      if (destroyed.delete(keyOf(resource))) return;
      await destroy(kind, await priorOf(kind, { id, outputs }), true);
    },
    async close() {
      // When the provider receives a new configuration, it closes the connections of the previous one.
      await Promise.all(all.map(configure));
    },
  };

  async function importOf(kind: Kind, id: string): Promise<Row> {
    const { typeName, attributes } = kind;
    const answer = await planning.call("ImportResourceState", { typeName, id });
    throwErrors(kind, answer);
    const [imported, ...more] = answer.importedResources;
    const row = imported && decoded(attributes, imported.state);
    if (!row || more.length > 0 || imported.typeName !== typeName) throw new Error(`${typeName}: no import`);
    mustBeKnown(attributes, row);
    return row;
  }
}

/**
 * Converts a row of attributes to the test harness's form of a state object. Adds the object's secrets, and keeps its
 * taint.
 */
function stateOf({ attributes }: Kind, row: Row, before: Values, secrets?: Row): CreatedObject {
  const { id, ...values } = valuesOf(attributes, row);
  const names = attributes.filter(({ writeOnly }) => writeOnly).map(({ name }) => name);
  const kept = names.map((name) => {
    const output = name.replace(/_wo$/, "");
    return [output, secrets ? secrets[name] : before[output]] as const;
  });
  const taint = before[TAINTED] ? { [TAINTED]: true } : {};
  return { id: String(id), outputs: { ...values, ...Object.fromEntries(kept), ...taint } };
}

const inputNamed = ({ inputs }: ResourceDefinition, attribute: string): string =>
  Object.keys(inputs).find((name) => snake(name) === attribute) ?? attribute;

/** Returns the changed inputs for which the provider creates a new object, although Terraform plans an update. */
const replacedBy = ({ definition: { inputs } }: Kind, prior: Row, planned: Row): string[] =>
  Object.keys(inputs).filter((name) => {
    const attribute = snake(name);
    return inputs[name]?.replaces && !isDeepStrictEqual(planned[attribute], prior[attribute]);
  });

/** Phrases that differ in error messages: the Terraform provider's phrase, and that of the other front ends. */
const PHRASES: readonly (readonly [terraform: string, other: string])[] = [
  ["run terraform plan again", "run with --refresh"],
  ["of this configuration", "of this program"],
];

/** Converts the text of an error: replaces Terraform's names and notation with those of the other front ends. */
function withDefinitionNames(
  { name: type, inputs, outputs }: ResourceDefinition,
  { attribute, detail }: Diagnostic,
) {
  const steps = attribute?.steps.map(({ attributeName }) => attributeName) ?? [];
  const place = steps.length > 0 ? `${steps.join(".")}: ` : "";
  if (!detail.startsWith(place)) throw new Error(`the error at ${place} has the detail ${detail}`);
  let text = `${[type, ...steps].join(".")}: ${detail.slice(place.length)}`;
  for (const name of [...Object.keys(inputs), ...Object.keys(outputs)]) {
    text = text
      .replaceAll(new RegExp(`\\b${snake(name)}\\b`, "g"), name)
      .replaceAll(new RegExp(`\\b${name} = (?=true|false|"|-?\\d)`, "g"), `${name}: `);
  }
  return PHRASES.reduce((result, [terraform, other]) => result.replaceAll(terraform, other), text);
}
