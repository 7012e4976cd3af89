import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import type { MethodDefinition } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { pluginServices } from "../../../provider/providers/terraform/protocol.ts";
import { TerraformProvider } from "../../../provider/providers/terraform/terraformProvider.ts";
import type { ResourceDefinition } from "../../../provider/resources/definition.ts";
import { definitions } from "../../../provider/resources/index.ts";
import { snake, typeOf } from "../../terraform/support/configurations.ts";
import { type DoorOptions, type FrontDoor, type Made, type Named, StateChangedError } from "./door.ts";
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

/** The fields of all responses, of which each has some. */
interface Answer {
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

/** A kind of resource. */
interface Kind {
  readonly definition: ResourceDefinition;
  readonly typeName: string;
  readonly attributes: readonly Attribute[];
}

/** What the provider plans for a resource. */
interface Plan {
  readonly planned: Row;
  /** Names of the attributes whose change makes it a replacement. */
  readonly replaces: readonly string[];
  readonly private: Uint8Array | undefined;
}

/** A change that was planned. */
interface Change {
  readonly prior: Row | undefined;
  readonly planned: Row;
  /** True for an update that makes a new object. */
  readonly isAnew: boolean;
  /** True where somebody asked for a new object. */
  readonly isAsked: boolean;
}

const ERROR = 1;

/** In the values of a state: its object is not as declared, so the next run makes it anew. */
const TAINTED = "tainted";

/** Terraform's side of the protocol: its own description of the messages. */
const protocol = protobuf.loadSync(fileURLToPath(new URL("tfplugin6.proto", import.meta.url))).resolveAll();
const calls = protocol.lookupService("tfplugin6.Provider").methods;

const providersSide = pluginServices()["tfplugin6.Provider"] as Readonly<
  Record<string, MethodDefinition<object, object>>
>;

/** One process of the provider, which gets requests and returns responses as bytes. */
class Provider {
  readonly #methods: Readonly<Record<string, (request: never) => object | Promise<object>>>;

  constructor(env: Readonly<Record<string, string>>) {
    this.#methods = new TerraformProvider(env).methods();
  }

  async ask(method: string, request: object): Promise<Answer> {
    const [call, provider, answering] = [calls[method], providersSide[method], this.#methods[method]];
    const { resolvedRequestType: sent, resolvedResponseType: received } = call ?? {};
    if (!sent || !received || !provider || !answering) throw new Error(`no method ${method}`);
    const problem = sent.verify(request);
    if (problem) throw new Error(`${method}: ${problem}`);
    const bytes = Buffer.from(sent.encode(request).finish());
    const answer = await answering(provider.requestDeserialize(bytes) as never);
    const message = received.decode(provider.responseSerialize(answer));
    return received.toObject(message, { defaults: true, longs: Number }) as Answer;
  }
}

/** What the provider announces, in all processes alike. */
interface Announced {
  readonly provider: readonly Attribute[];
  readonly kinds: ReadonlyMap<string, Kind>;
}

let announced: Announced | undefined;

async function announcedBy(provider: Provider): Promise<Announced> {
  if (announced) return announced;
  const { provider: own, resourceSchemas } = await provider.ask("GetProviderSchema", {});
  const kinds = definitions.map((definition): [string, Kind] => {
    const typeName = typeOf(definition);
    const attributes = resourceSchemas[typeName]?.block.attributes.map(attributeOf) ?? [];
    const names = attributes.map(({ name }) => name).sort();
    const expected = attributeNames(definition).sort();
    if (!isDeepStrictEqual(names, expected)) throw new Error(`${typeName} has ${names}, and not ${expected}`);
    return [definition.name, { definition, typeName, attributes }];
  });
  announced = { provider: own.block.attributes.map(attributeOf), kinds: new Map(kinds) };
  return announced;
}

/** A state in clear holds no secret. One that somebody may choose is given, and counted. */
const attributeNames = ({ inputs, outputs }: ResourceDefinition): string[] => [
  "id",
  ...Object.keys(inputs).map(snake),
  ...Object.entries(outputs).flatMap(([name, { secret, choice }]) => {
    if (!secret) return [snake(name)];
    return choice ? [`${snake(name)}_wo`, `${snake(name)}_wo_version`] : [];
  }),
];

/**
 * The provider of Terraform, by its protocol, and in the order in which Terraform asks: one process plans, another one
 * plans again and applies, and a third one plans what was applied. On the way it is held to what Terraform demands of
 * every provider, and to an empty plan after each apply.
 *
 * What becomes of a replacement is Terraform's: the old object is destroyed before the new one is made, unless the
 * provider does both in one update. Secrets are chosen for each step, and are in the outputs beside what a state holds.
 */
export async function terraformDoor({ env, replace, force = [] }: DoorOptions): Promise<FrontDoor> {
  const [planning, applying, next] = [new Provider(env), new Provider(env), new Provider(env)];
  const { provider: settings, kinds } = await announcedBy(planning);
  const configure = (provider: Provider) =>
    provider
      .ask("ConfigureProvider", { terraformVersion: "1.11.0", config: encoded(rowOf(settings, {})) })
      .then(({ diagnostics }) => {
        for (const { severity, detail } of diagnostics) if (severity === ERROR) throw new Error(detail);
      });
  const all = [planning, applying, next];
  await Promise.all(all.map(configure));

  const changes = new Map<string, Change>();
  /** Objects that are destroyed before the new ones are made. */
  const olds = new Map<string, { readonly prior: Row; readonly private: Uint8Array | undefined }>();
  const destroyed = new Set<string>();

  const keyOf = ({ type, name }: Named) => `${type} ${name}`;
  const kindOf = ({ type }: Named): Kind => {
    const kind = kinds.get(type);
    if (!kind) throw new Error(`no resource ${type}`);
    return kind;
  };

  /** The configuration of a resource. What is secret in it is new each time, as an ephemeral value is. */
  const configOf = (kind: Kind, inputs: Values, prior?: Row, isAsked = false): Row => {
    const { attributes } = kind;
    const row: Record<string, unknown> = {
      ...(given({ kind: "object", members: attributes }, inputs) as Row),
    };
    for (const { name, writeOnly } of attributes) {
      if (!writeOnly) continue;
      const version = `${name}_version`;
      row[name] = randomUUID();
      row[version] = isAsked ? Number(prior?.[version] ?? 0) + 1 : (prior?.[version] ?? null);
    }
    return row;
  };

  /** Says warnings, and gives the errors in the words that the other doors have. */
  const errorsIn = (kind: Kind, { diagnostics }: Answer, config: Row = {}): string[] => {
    const secrets = kind.attributes.flatMap(({ name, writeOnly }) => (writeOnly ? [config[name]] : []));
    const shown = JSON.stringify(diagnostics);
    if (secrets.some((secret) => typeof secret === "string" && shown.includes(secret))) {
      throw new Error(`a secret is in ${shown}`);
    }
    for (const { severity, detail } of diagnostics) if (severity !== ERROR) console.log(detail);
    return diagnostics
      .filter(({ severity }) => severity === ERROR)
      .map((one) => otherWords(kind.definition, one));
  };
  const throwErrors = (kind: Kind, answer: Answer, config?: Row) => {
    const errors = errorsIn(kind, answer, config);
    if (errors.length > 0) throw new Error(errors.join("; "));
  };

  /** The state as the provider has it now, which was written as JSON before. */
  const priorOf = async (kind: Kind, { id, outputs }: Made): Promise<Row> => {
    const { typeName, attributes } = kind;
    const row = { ...rowOf(attributes, outputs), id };
    const json = Buffer.from(JSON.stringify(row));
    const answer = await planning.ask("UpgradeResourceState", { typeName, version: 0, rawState: { json } });
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
    const answer = await provider.ask("PlanResourceChange", {
      ...{ typeName, priorPrivate },
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

  /** Applies a change. The provider is asked once more what it will be, by the process that does it. */
  const apply = async (resource: Named, inputs: Values, change: Change, before: Values): Promise<Made> => {
    const kind = kindOf(resource);
    const { typeName, attributes } = kind;
    const { prior, isAsked, isAnew } = change;
    const config = configOf(kind, inputs, prior, isAsked);
    const { planned } = await mustPlanOn(applying, kind, config, prior);
    mustKeep(change.planned, planned, typeName);
    const answer = await applying.ask("ApplyResourceChange", {
      typeName,
      priorState: encoded(prior),
      plannedState: encoded(planned),
      config: encoded(config),
    });
    const row = decoded(attributes, answer.newState);
    if (row) mustBeKnown(attributes, row);
    const secrets = !prior || isAnew ? config : undefined;
    const errors = errorsIn(kind, answer, config);
    if (errors.length > 0) {
      const failure = errors.join("; ");
      // What is left of a create that failed is there, but not as declared.
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

  /** Destroys an object. Terraform plans that first, but where another object takes its place. */
  const destroy = async (kind: Kind, prior: Row, isPlanned: boolean): Promise<void> => {
    const { typeName, attributes } = kind;
    const [nothing, priorState] = [encoded(undefined), encoded(prior)];
    const request = { typeName, priorState, config: nothing };
    if (isPlanned) {
      const planned = await planning.ask("PlanResourceChange", { ...request, proposedNewState: nothing });
      throwErrors(kind, planned);
      if (decoded(attributes, planned.plannedState))
        throw new Error(`${typeName}: planned not to be destroyed`);
    }
    const answer = await applying.ask("ApplyResourceChange", { ...request, plannedState: nothing });
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
      const failures = errorsIn(kind, await planning.ask("ValidateResourceConfig", validation), config);
      const isKept = Object.keys(state).length > 0 || changes.get(key)?.isAnew;
      if (failures.length > 0 || isKept) return { inputs: news, failures };
      const plan = await planOn(planning, kind, config, undefined, olds.get(key)?.private);
      if (!("planned" in plan)) return { inputs: news, failures: plan };
      changes.set(key, { prior: undefined, planned: plan.planned, isAnew: false, isAsked: false });
      return { inputs: news, failures };
    },
    async diff(resource, id, outputs, inputs) {
      const kind = kindOf(resource);
      const key = keyOf(resource);
      const prior = await priorOf(kind, { id, outputs });
      if (outputs[TAINTED]) {
        olds.set(key, { prior, private: undefined });
        return ["id"];
      }
      const isForced = force.includes(resource.name);
      const isAsked = replace.includes(resource.name);
      const asked = isAsked || isForced ? ["id"] : [];
      const config = configOf(kind, inputs, prior, isAsked);
      const { planned, replaces, ...plan } = await mustPlanOn(planning, kind, config, prior);
      const isAnew = planned.id === UNKNOWN && !isForced;
      if (replaces.length + asked.length > 0 && !isAnew) {
        olds.set(key, { prior, private: plan.private });
        return [...replaces.map((name) => inputNamed(kind.definition, name)), ...asked];
      }
      if (!isDeepStrictEqual(planned, prior)) {
        changes.set(key, { prior, planned, isAnew, isAsked });
        if (!isAnew) return [];
        const why = [...replacedBy(kind, prior, planned), ...asked];
        return why.length > 0 ? why : ["id"];
      }
      // Terraform plans also what stays when it applies the rest.
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
      if (change.isAnew || !old) {
        const made = await apply(resource, inputs, change, {});
        if (change.isAnew) destroyed.add(key);
        return made;
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
      const answer = await planning.ask("ReadResource", { typeName, currentState: encoded(current) });
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
      // Configured anew, it closes what it had.
      await Promise.all(all.map(configure));
    },
  };

  async function importOf(kind: Kind, id: string): Promise<Row> {
    const { typeName, attributes } = kind;
    const answer = await planning.ask("ImportResourceState", { typeName, id });
    throwErrors(kind, answer);
    const [imported, ...more] = answer.importedResources;
    const row = imported && decoded(attributes, imported.state);
    if (!row || more.length > 0 || imported.typeName !== typeName) throw new Error(`${typeName}: no import`);
    mustBeKnown(attributes, row);
    return row;
  }
}

/** A row as tests know states: beside it are the secrets of the object, and what a test has beside. */
function stateOf({ attributes }: Kind, row: Row, before: Values, secrets?: Row): Made {
  const { id, ...values } = valuesOf(attributes, row);
  const names = attributes.filter(({ writeOnly }) => writeOnly).map(({ name }) => name);
  const kept = names.map((name) => {
    const output = name.replace(/_wo$/, "");
    return [output, secrets ? secrets[name] : before[output]] as const;
  });
  const beside = before[TAINTED] ? { [TAINTED]: true } : {};
  return { id: String(id), outputs: { ...values, ...Object.fromEntries(kept), ...beside } };
}

const inputNamed = ({ inputs }: ResourceDefinition, attribute: string): string =>
  Object.keys(inputs).find((name) => snake(name) === attribute) ?? attribute;

/** The inputs for which an object is made anew by an update. No plan tells others than those that somebody changed. */
const replacedBy = ({ definition: { inputs } }: Kind, prior: Row, planned: Row): string[] =>
  Object.keys(inputs).filter((name) => {
    const attribute = snake(name);
    return inputs[name]?.replaces && !isDeepStrictEqual(planned[attribute], prior[attribute]);
  });

/** What Terraform's users are told, and what others are told of the same. */
const OTHER_WORDS: readonly (readonly [terraform: string, other: string])[] = [
  ["run terraform plan again", "run with --refresh"],
  ["of this configuration", "of this program"],
];

/** An error as it is told by the other doors: with the definition's names, and their notation. */
function otherWords({ name: type, inputs, outputs }: ResourceDefinition, { attribute, detail }: Diagnostic) {
  const steps = attribute?.steps.map(({ attributeName }) => attributeName) ?? [];
  const place = steps.length > 0 ? `${steps.join(".")}: ` : "";
  if (!detail.startsWith(place)) throw new Error(`an error at ${place} says ${detail}`);
  let text = `${[type, ...steps].join(".")}: ${detail.slice(place.length)}`;
  for (const name of [...Object.keys(inputs), ...Object.keys(outputs)]) {
    text = text
      .replaceAll(new RegExp(`\\b${snake(name)}\\b`, "g"), name)
      .replaceAll(new RegExp(`\\b${name} = (?=true|false|"|-?\\d)`, "g"), `${name}: `);
  }
  return OTHER_WORDS.reduce((said, [terraform, other]) => said.replaceAll(terraform, other), text);
}
