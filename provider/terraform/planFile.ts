import { z } from "zod";
import {
  EngineError,
  type FieldChange,
  fieldDiff,
  makeUrn,
  OWN_PLUGIN,
  type Result,
  refreshedFields,
  type StateResource,
  type Step,
  type StepOp,
  shownValues,
  summarise,
} from "../engine/index.ts";
import { definitions } from "../resources/index.ts";
import { UNKNOWN } from "../valueMarks.ts";
import { type Attribute, attributesOf } from "./attributes.ts";
import { fromTerraform, type Row, typeNameOf } from "./types.ts";
import type { Workspace } from "./workspace.ts";

/** What a plan of Terraform says of this provider's resources. */
export interface TerraformPlan {
  /** What an apply would do, with values. */
  readonly plan: Result;
  /** What somebody changed or deleted since the last apply. */
  readonly drift: Result;
  /** The resources in the state, as the plan read them. */
  readonly resources: readonly StateResource[];
  /** What the configuration says of the provider itself, as far as it is known: `gatehouse:url`, `gatehouse:tenant`. */
  readonly settings: ReadonlyMap<string, string>;
}

const values = z.record(z.string(), z.unknown());

const resourceChange = z.object({
  address: z.string(),
  mode: z.string().default("managed"),
  type: z.string(),
  change: z.object({
    actions: z.array(z.string()),
    before: values.nullable().default(null),
    after: values.nullable().default(null),
    after_unknown: z.union([values, z.boolean()]).default({}),
    replace_paths: z.array(z.array(z.unknown())).default([]),
    importing: z.looseObject({}).nullish(),
  }),
});

type ResourceChange = z.output<typeof resourceChange>;

const expression = z.looseObject({
  constant_value: z.unknown().optional(),
  references: z.array(z.string()).optional(),
});

const configuredResource = z.looseObject({
  address: z.string(),
  provider_config_key: z.string().optional(),
  expressions: values.default({}),
});

const moduleConfiguration = z.looseObject({
  resources: z.array(configuredResource).default([]),
  get module_calls() {
    return z.record(z.string(), z.looseObject({ module: moduleConfiguration.optional() })).default({});
  },
});

const stateModule = z.looseObject({
  resources: z
    .array(
      z.looseObject({
        address: z.string(),
        mode: z.string().default("managed"),
        type: z.string(),
        values: values.default({}),
      }),
    )
    .default([]),
  get child_modules() {
    return z.array(stateModule).default([]);
  },
});

type StateModule = z.output<typeof stateModule>;

const planJson = z.looseObject({
  format_version: z.string().regex(/^1\./, { error: "must be 1.x: another Terraform wrote this" }),
  resource_changes: z.array(resourceChange).default([]),
  resource_drift: z.array(resourceChange).default([]),
  prior_state: z
    .looseObject({ values: z.looseObject({ root_module: stateModule.optional() }).optional() })
    .optional(),
  variables: z.record(z.string(), z.looseObject({ value: z.unknown().optional() })).default({}),
  configuration: z
    .looseObject({
      provider_config: z
        .record(
          z.string(),
          z.looseObject({
            name: z.string().optional(),
            expressions: z.record(z.string(), z.unknown()).default({}),
          }),
        )
        .default({}),
      root_module: moduleConfiguration.optional(),
    })
    .default({ provider_config: {} }),
});

type PlanJson = z.output<typeof planJson>;

const kinds = new Map(
  definitions.map((definition) => [
    typeNameOf(definition),
    { definition, attributes: attributesOf(definition) },
  ]),
);

/** Where a plan is from. */
export interface PlanOrigin {
  /** What errors call the plan. */
  readonly name: string;
  readonly workspace: Workspace;
}

/**
 * Reads a plan that `terraform show -json` wrote.
 * @throws EngineError (`plan_file`) where it is none
 */
export function readTerraformPlan(text: string, { name, workspace: place }: PlanOrigin): TerraformPlan {
  const json = planIn(text, name);
  const reader = new PlanReader(json, place);
  const own = (changes: readonly ResourceChange[]) =>
    changes.filter(({ mode, type }) => mode === "managed" && kinds.has(type));
  const drifted = own(json.resource_drift);
  const changes = own([...json.resource_changes, ...left(json)]);
  const driftSteps = drifted.flatMap((change) => reader.drift(change));
  const isDrifted = new Set(driftSteps.map(({ name: address }) => address));
  const others = changes.filter(({ address, change }) => change.before && !isDrifted.has(address));
  const unchanged = others.map((resource) => ({ ...reader.step(resource), op: "same" as const, fields: [] }));
  return {
    plan: resultOf(
      "preview",
      place,
      changes.map((change) => reader.step(change)),
      true,
    ),
    drift: resultOf("drift", place, [...driftSteps, ...unchanged], false),
    resources: changes.flatMap((change) => reader.resource(change)),
    settings: reader.settings(),
  };
}

function planIn(text: string, name: string): PlanJson {
  const how = "write it by: terraform show -json FILE > plan.json";
  if (text.startsWith("PK")) {
    throw new EngineError("plan_file", `${name} is a saved plan, which Terraform alone can read; ${how}`);
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new EngineError("plan_file", `${name} is no plan in JSON; ${how}`, { cause });
  }
  const result = planJson.safeParse(parsed);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.map(String).join(".") ?? "";
  throw new EngineError("plan_file", `${name} is no plan of Terraform: ${where} ${issue?.message}; ${how}`);
}

function resultOf(
  command: "preview" | "drift",
  place: Workspace,
  steps: readonly Step[],
  planned: boolean,
): Result {
  return {
    ...{ engine: "terraform", command, ...place, ok: true, planned, createdStack: false },
    ...{ steps, summary: summarise(steps), outputs: {}, diagnostics: [], durationMs: 0 },
  };
}

type Values = Readonly<Record<string, unknown>>;
/** A row in the terms of the declarative model. */
interface RowValues {
  readonly inputs: Values;
  readonly outputs: Values;
}

/** The resources of one plan in the terms of the declarative model. */
class PlanReader {
  readonly #json: PlanJson;
  readonly #place: Workspace;
  readonly #configured: ReadonlyMap<string, z.output<typeof configuredResource>>;

  constructor(json: PlanJson, place: Workspace) {
    this.#json = json;
    this.#place = place;
    this.#configured = new Map(configuredIn(json.configuration.root_module, ""));
  }

  /** What an apply does with a resource. */
  step({ address, type, change }: ResourceChange): Step {
    const before = change.before ? this.#values(address, type, change.before) : undefined;
    const after = change.after
      ? this.#values(address, type, marked(change.after, change.after_unknown) as Row, true)
      : undefined;
    const op = opOf(change);
    const isForgotten = change.actions.includes("forget");
    const fields = op === "same" ? [] : this.#fields(before, after);
    return {
      ...this.#named(address, type),
      ...idOf(change.before),
      ...{ op, fields },
      ...(change.replace_paths.length > 0 && {
        replaceKeys: change.replace_paths.map(([name]) => propertyOf(type, String(name))),
      }),
      ...(before && { before: this.#shown(address, before, isForgotten) }),
      ...(after && { after: this.#shown(address, after) }),
    };
  }

  /** What somebody did to a resource; nothing where it is the same for the declarative model. */
  drift({ address, type, change }: ResourceChange): Step[] {
    if (!change.before) return [];
    const before = this.#values(address, type, change.before);
    const after = change.after ? this.#values(address, type, change.after) : undefined;
    const fields = after ? refreshedFields(propsOf(before), propsOf(after)) : [];
    if (after && fields.length === 0) return [];
    return [
      {
        ...this.#named(address, type),
        ...idOf(change.before),
        ...{ op: after ? "update" : "delete", fields },
        before: this.#shown(address, before),
        ...(after && { after: this.#shown(address, after) }),
      },
    ];
  }

  /** The resource in the state; nothing for one that is still to be made. */
  resource({ address, type, change }: ResourceChange): StateResource[] {
    if (!change.before) return [];
    const { inputs, outputs } = this.#values(address, type, change.before);
    const { urn, type: own } = this.#named(address, type);
    return [{ urn, type: own, ...idOf(change.before), inputs, outputs: { ...inputs, ...outputs } }];
  }

  /** The settings of the provider configuration that has no alias. */
  settings(): ReadonlyMap<string, string> {
    const found = Object.entries(this.#settingsOf("gatehouse")).filter(
      (entry): entry is [string, string] => typeof entry[1] === "string" && entry[1] !== UNKNOWN,
    );
    return new Map(found.map(([name, value]) => [`gatehouse:${name}`, value]));
  }

  #named(address: string, type: string): Pick<Step, "urn" | "type" | "name"> {
    const own = OWN_PLUGIN + (kinds.get(type)?.definition.name ?? type);
    const { project, stack } = this.#place;
    return { urn: makeUrn(stack, project, "", own, address), type: own, name: address };
  }

  /**
   * The values in a row.
   * @param planned true for what is still to be: what a configuration leaves to the service is not known then, and no
   * input
   */
  #values(address: string, type: string, row: Row, planned = false): RowValues {
    const attributes = kinds.get(type)?.attributes ?? [];
    const given = planned ? this.#configured.get(withoutKeys(address))?.expressions : undefined;
    const isLeft = ({ name }: Attribute) => given !== undefined && row[name] === UNKNOWN && !(name in given);
    const of = (wanted: Attribute["role"]) => {
      const entries = attributes
        .filter((attribute) => attribute.role === wanted && !isLeft(attribute))
        .map(({ name, property, type }) => [property, fromTerraform(type, row[name])] as const);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    };
    return { inputs: of("input"), outputs: of("output") };
  }

  #fields(before: RowValues | undefined, after: RowValues | undefined): FieldChange[] {
    return fieldDiff(before && propsOf(before).inputs, after && propsOf(after).inputs);
  }

  #shown(address: string, values: RowValues, retainOnDelete = false) {
    const provider = this.#settingsOf(
      this.#configured.get(withoutKeys(address))?.provider_config_key ?? "gatehouse",
    );
    const shown = shownValues({ ...propsOf(values), retainOnDelete });
    return { ...shown, ...(provider.url !== undefined && { provider: { url: shownUrl(provider.url) } }) };
  }

  /** The address and the namespace of a provider configuration, unknown where they are no constants or variables. */
  #settingsOf(key: string): { readonly url?: unknown; readonly tenant?: unknown } {
    const all = this.#json.configuration.provider_config;
    const { expressions = {} } = all[key] ?? all[key.split(":").at(-1) ?? ""] ?? {};
    const given = (name: string) => {
      const parsed = expression.safeParse(expressions[name]);
      if (!parsed.success) return undefined;
      const { constant_value: constant, references: [first = ""] = [] } = parsed.data;
      if (constant !== undefined) return constant;
      const [, variable] = /^var\.([\w-]+)$/.exec(first) ?? [];
      return (variable && this.#json.variables[variable]?.value) ?? UNKNOWN;
    };
    const [url, tenant] = [given("url"), given("tenant")];
    return { ...(url !== undefined && { url }), ...(tenant !== undefined && { tenant }) };
  }
}

const shownUrl = (url: unknown): string => (url === UNKNOWN ? "[unknown]" : String(url));

/** Values as the engines' functions take them. */
const propsOf = ({ inputs, outputs }: RowValues) =>
  ({ inputs, outputs: { ...inputs, ...outputs } }) as Parameters<typeof refreshedFields>[0];

const idOf = (row: Row | null): { readonly id?: string } =>
  typeof row?.id === "string" ? { id: row.id } : {};

const propertyOf = (type: string, name: string): string =>
  kinds.get(type)?.attributes.find((attribute) => attribute.name === name)?.property ?? name;

function opOf({ actions, importing, after_unknown: unknown }: ResourceChange["change"]): StepOp {
  if (actions.includes("delete") || actions.includes("forget"))
    return actions.includes("create") ? "replace" : "delete";
  if (actions.includes("create")) return "create";
  if (!actions.includes("update")) return importing ? "import" : "same";
  // What carries on from the object that it replaces is made in an update.
  return typeof unknown === "object" && unknown.id === true ? "replace" : "update";
}

/** A value with the mark of what is not known in its places. */
function marked(value: unknown, unknown: unknown): unknown {
  if (unknown === true) return UNKNOWN;
  if (Array.isArray(unknown)) {
    const items = Array.isArray(value) ? value : [];
    return Array.from({ length: Math.max(items.length, unknown.length) }, (_, index) =>
      marked(items[index], unknown[index]),
    );
  }
  if (typeof unknown !== "object" || unknown === null) return value;
  const members = Object.entries(unknown).map(([name, inner]) => [
    name,
    marked((value as Row | null)?.[name], inner),
  ]);
  return { ...(value as Row | null), ...Object.fromEntries(members) };
}

/**
 * Resources that the plan does not speak of, as one that only refreshes, or that is limited to targets: they stay as they
 * are; and what somebody changed is declared as the state had it.
 */
function left({
  prior_state: state,
  resource_changes: changes,
  resource_drift: drift,
}: PlanJson): ResourceChange[] {
  const told = new Set(changes.map(({ address }) => address));
  const drifted = drift.filter(({ address }) => !told.has(address));
  const restored = drifted.map(({ change, ...resource }) => ({
    ...resource,
    change: {
      ...NO_CHANGE,
      actions: [change.after ? "update" : "create"],
      before: change.after,
      after: change.before,
    },
  }));
  for (const { address } of drifted) told.add(address);
  const same = resourcesIn(state?.values?.root_module)
    .filter(({ address }) => !told.has(address))
    .map(({ values, ...resource }) => ({
      ...resource,
      change: { ...NO_CHANGE, before: values, after: values },
    }));
  return [...restored, ...same];
}

const NO_CHANGE = { actions: ["no-op"], after_unknown: {}, replace_paths: [] };

const resourcesIn = (module: StateModule | undefined): StateModule["resources"] =>
  module ? [...module.resources, ...module.child_modules.flatMap(resourcesIn)] : [];

/** All resources of a configuration, by their addresses without the keys of `count` and `for_each`. */
function configuredIn(
  module: z.output<typeof moduleConfiguration> | undefined,
  path: string,
): (readonly [string, z.output<typeof configuredResource>])[] {
  if (!module) return [];
  return [
    ...module.resources.map((resource) => [`${path}${resource.address}`, resource] as const),
    ...Object.entries(module.module_calls).flatMap(([name, call]) =>
      configuredIn(call.module, `${path}module.${name}.`),
    ),
  ];
}

/** `module.a["x"].gatehouse_tag.b[0]` as `module.a.gatehouse_tag.b`. */
const withoutKeys = (address: string): string => address.replaceAll(/\[(?:\d+|"(?:[^"\\]|\\.)*")\]/g, "");
