import {
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
import {
  type ConfiguredResource,
  configuredResources,
  expression,
  type PlanJson,
  parsePlan,
  type ResourceChange,
  unspoken,
} from "./planJson.ts";
import { type PlannedWork, workOf } from "./plannedWork.ts";
import { type Row, typeNameOf, valuesOf } from "./types.ts";
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
  /** What an apply would do to resources of all providers, to be compared with what another plan would; few ask for it. */
  readonly work: () => PlannedWork;
}

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
  const json = parsePlan(text, name);
  const reader = new PlanReader(json, place);
  const own = (changes: readonly ResourceChange[]) =>
    changes.filter(({ mode, type }) => mode === "managed" && kinds.has(type));
  const changes = own([...json.resource_changes, ...unspoken(json)]);
  const steps = changes.map((change) => reader.step(change));
  const settings = reader.settings();
  const drifted = own(json.resource_drift).flatMap((change) => reader.drift(change));
  const isDrifted = new Set(drifted.map(({ urn }) => urn));
  const unchanged = steps
    .filter(({ before, urn }) => before && !isDrifted.has(urn))
    .map((step): Step => ({ ...step, op: "same", fields: [] }));
  return {
    plan: resultOf("preview", place, steps),
    drift: resultOf("drift", place, [...drifted, ...unchanged]),
    resources: changes.flatMap((change) => reader.resource(change)),
    settings,
    work: () => workOf(json, settings, (type) => kinds.get(type)?.attributes ?? []),
  };
}

function resultOf(command: "preview" | "drift", place: Workspace, steps: readonly Step[]): Result {
  const planned = command === "preview";
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

/** The address and the namespace of a provider configuration, as far as it says them. */
interface Settings {
  readonly url?: unknown;
  readonly tenant?: unknown;
}

/** The resources of one plan in the terms of the declarative model. */
class PlanReader {
  readonly #json: PlanJson;
  readonly #place: Workspace;
  readonly #configured: ReadonlyMap<string, ConfiguredResource>;
  /** Settings of provider configurations, by their keys. */
  readonly #settings = new Map<string, Settings>();

  constructor(json: PlanJson, place: Workspace) {
    this.#json = json;
    this.#place = place;
    this.#configured = configuredResources(json);
  }

  /** What an apply does with a resource. */
  step({ address, type, change }: ResourceChange): Step {
    const before = change.before ? this.#values(address, type, change.before) : undefined;
    const after = change.after
      ? this.#values(address, type, marked(change.after, change.after_unknown) as Row, true)
      : undefined;
    const op = opOf(change);
    const isForgotten = change.actions.includes("forget");
    const inputsOf = (values: RowValues | undefined) => values && propsOf(values).inputs;
    const fields = op === "same" ? [] : fieldDiff(inputsOf(before), inputsOf(after));
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
    const of = (wanted: Attribute["role"]) =>
      valuesOf(
        attributes.filter((attribute) => attribute.role === wanted && !isLeft(attribute)),
        row,
      );
    return { inputs: of("input"), outputs: of("output") };
  }

  #shown(address: string, values: RowValues, retainOnDelete = false) {
    const provider = this.#settingsOf(
      this.#configured.get(withoutKeys(address))?.provider_config_key ?? "gatehouse",
    );
    const shown = shownValues({ ...propsOf(values), retainOnDelete });
    return { ...shown, ...(provider.url !== undefined && { provider: { url: shownUrl(provider.url) } }) };
  }

  #settingsOf(key: string): Settings {
    const known = this.#settings.get(key);
    if (known) return known;
    const { provider_config: all } = this.#json.configuration;
    const { expressions = {} } = all[key] ?? all[key.split(":").at(-1) ?? ""] ?? {};
    const [url, tenant] = [this.#given(expressions.url), this.#given(expressions.tenant)];
    const settings = { ...(url !== undefined && { url }), ...(tenant !== undefined && { tenant }) };
    this.#settings.set(key, settings);
    return settings;
  }

  /** What an expression gives: a constant, or the value of a variable; unknown where it is neither. */
  #given(written: unknown): unknown {
    const parsed = expression.safeParse(written);
    if (!parsed.success) return undefined;
    const { constant_value: constant, references: [first = ""] = [] } = parsed.data;
    if (constant !== undefined) return constant;
    const [, variable] = /^var\.([\w-]+)$/.exec(first) ?? [];
    return (variable && this.#json.variables[variable]?.value) ?? UNKNOWN;
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

/** `module.a["x"].gatehouse_tag.b[0]` as `module.a.gatehouse_tag.b`. */
const withoutKeys = (address: string): string => address.replaceAll(/\[(?:\d+|"(?:[^"\\]|\\.)*")\]/g, "");
