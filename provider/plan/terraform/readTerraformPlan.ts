import {
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
  summarize,
} from "../../engine/index.ts";
import { UNKNOWN } from "../../engineMarks.ts";
import { definitions } from "../../resources/index.ts";
import { type Attribute, attributesOf } from "../../terraform/attributes.ts";
import { isOwnSource } from "../../terraform/source.ts";
import { type Row, terraformName, typeNameOf, valuesOf } from "../../terraform/types.ts";
import type { Workspace } from "../../terraform/workspace.ts";
import {
  type ConfiguredResource,
  configuredResources,
  expression,
  omittedResources,
  type PlanJson,
  parsePlan,
  type ResourceChange,
} from "./planJson.ts";
import { type PlannedWork, workOf } from "./plannedWork.ts";
import { type ConfigurationFacts, isOwnBlock, ProviderBlocks } from "./providerBlocks.ts";

/** A Terraform plan, reduced to the resources of this provider. */
export interface TerraformPlan {
  readonly plan: Result;
  readonly drift: Result;
  readonly resources: readonly StateResource[];
  /** The known settings of the provider: `gatehouse:url`, `gatehouse:tenant`. */
  readonly settings: ReadonlyMap<string, string>;
  /**
   * The `provider` argument with which resources get {@link settings}; omitted if the default block has these settings.
   */
  readonly provider?: string;
  /**
   * True if the provider block or the environment names the project. Otherwise the project is the base name of the root
   * module's folder, which other root modules can share.
   */
  readonly isProjectNamed: boolean;
  /** Resources and settings of the plan that cannot be evaluated, as sentences. */
  readonly notEvaluated: readonly string[];
  /** Summarizes the changes of all providers, for a comparison with another plan. */
  readonly work: () => PlannedWork;
}

const kinds = new Map(
  definitions.map((definition) => [
    typeNameOf(definition),
    { definition, attributes: attributesOf(definition) },
  ]),
);

/** The origin of a plan: its name, its workspace, and its root module. */
export interface PlanOrigin extends ConfigurationFacts {
  /** Name of the plan in errors. */
  readonly name: string;
  /** The workspace, with the project that the environment names, or else with the base name of the folder. */
  readonly workspace: Workspace;
  /**
   * True if the environment names the project.
   * @default false
   */
  readonly isProjectNamed?: boolean;
}

/**
 * Reads the output of `terraform show -json`.
 * @throws EngineError (`plan_file`) if the text is not a plan
 */
export function readTerraformPlan(text: string, origin: PlanOrigin): TerraformPlan {
  const { name, isProjectNamed = false } = origin;
  const json = parsePlan(text, name);
  const ofKinds = [...json.resource_changes, ...omittedResources(json)].filter(isOfKind);
  const own = (changes: readonly ResourceChange[]) =>
    changes.filter((change) => isOfKind(change) && isOwn(change));
  const changes = own(ofKinds);
  const reader = new PlanReader(json, changes, origin);
  const { place } = reader;
  const steps = changes.map((change) => reader.step(change));
  const settings = reader.blocks.shared();
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
    ...reader.blocks.named(),
    isProjectNamed: isProjectNamed || settings.has("gatehouse:project"),
    notEvaluated: [...incomplete(json), ...ofOthers(ofKinds), ...reader.blocks.notEvaluated()],
    work: () => workOf(json, settings, (type) => kinds.get(type)?.attributes ?? []),
  };
}

const isOfKind = ({ mode, type }: ResourceChange): boolean => mode === "managed" && kinds.has(type);

const isOwn = ({ provider_name: source }: ResourceChange): boolean =>
  source === undefined || isOwnSource(source);

/** Reports resources that have a type of this provider, but belong to another provider. */
const ofOthers = (changes: readonly ResourceChange[]): string[] =>
  changes
    .filter((change) => !isOwn(change))
    .map(
      ({ address, provider_name: source }) =>
        `${address}: not evaluated, since it belongs to the provider ${source}`,
    );

/** Reports a plan whose run failed, and changes that are deferred to a later plan. */
function incomplete({ errored, deferred_changes: deferred }: PlanJson): string[] {
  const own = deferred.filter(({ resource_change: { type } }) => kinds.has(type));
  return [
    ...(errored ? ["the plan is incomplete, since its run failed"] : []),
    ...own.map(
      ({ reason, resource_change: { address } }) =>
        `${address}: not evaluated, since its change is deferred to a later plan${reason === undefined ? "" : ` (${reason})`}`,
    ),
  ];
}

function resultOf(command: "preview" | "drift", place: Workspace, steps: readonly Step[]): Result {
  const planned = command === "preview";
  return {
    ...{ engine: "terraform", command, ...place, ok: true, planned, createdStack: false },
    ...{ steps, summary: summarize(steps), outputs: {}, diagnostics: [], durationMs: 0 },
  };
}

type Values = Readonly<Record<string, unknown>>;
interface RowValues {
  readonly inputs: Values;
  readonly outputs: Values;
}

/** Converts the resources of a Terraform plan to the form of Pulumi resources: steps with inputs and outputs. */
class PlanReader {
  /** The workspace of the plan. A known project in the provider block takes precedence. */
  readonly place: Workspace;
  readonly #configured: ReadonlyMap<string, ConfiguredResource>;
  readonly #changes: ReadonlyMap<string, ResourceChange["change"]>;
  readonly blocks: ProviderBlocks;

  constructor(json: PlanJson, changes: readonly ResourceChange[], origin: PlanOrigin) {
    this.#configured = configuredResources(json);
    const own = [...this.#configured.values()].filter(
      ({ type, provider_config_key: key }) => kinds.has(type) && (key === undefined || isOwnBlock(json, key)),
    );
    const tenants = changes.flatMap(({ address, type, change }) => {
      const resource = this.#configured.get(withoutKeys(address));
      const isNamed = resource && "tenant" in resource.expressions;
      if (isNamed || !kinds.get(type)?.definition.inputs.tenant) return [];
      const row = change.after ? markedRow(change) : change.before;
      return [{ resource, tenant: row?.tenant }];
    });
    this.blocks = new ProviderBlocks(json, own, origin, tenants);
    const { project, stack } = origin.workspace;
    this.place = { project: this.blocks.shared().get("gatehouse:project") ?? project, stack };
    this.#changes = new Map(json.resource_changes.map(({ address, change }) => [address, change]));
  }

  step({ address, type, change }: ResourceChange): Step {
    const before = change.before ? this.#values(address, type, change.before) : undefined;
    const op = opOf(change);
    const row = change.after ? markedRow(change) : undefined;
    const instructions = row && op === "create" ? instructionsIn(type, row) : {};
    const planned = row && this.#values(address, type, row, true);
    const after = planned && { ...planned, inputs: { ...planned.inputs, ...instructions } };
    const isForgotten = change.actions.includes("forget");
    const inputsOf = (values: RowValues | undefined) => values && propsOf(values).inputs;
    const fields = op === "same" ? [] : fieldDiff(inputsOf(before), inputsOf(after));
    return {
      ...this.#named(address, type),
      ...idOf(change.before),
      ...{ op, fields },
      ...(isForgotten && { retained: true as const }),
      ...(change.replace_paths.length > 0 && {
        replaceKeys: change.replace_paths.map(([name]) => propertyOf(type, String(name))),
      }),
      ...(before && { before: this.#shown(address, before, isForgotten) }),
      ...(after && { after: this.#shownAfter(address, type, after) }),
    };
  }

  /** The URNs of the resources to which the arguments of a resource refer, by property. */
  /**
   * The URNs of the resources to which the arguments of a resource refer, by property. Omits arguments that may refer to
   * other objects too.
   */
  #references(address: string, type: string): Readonly<Record<string, readonly string[]>> {
    const { expressions = {} } = this.#configured.get(withoutKeys(address)) ?? {};
    const entries = Object.entries(expressions).map(([name, given]) => {
      const urns = referencesIn(given).map((reference) => this.#referenced(reference, address));
      const known = [...new Set(urns.filter((urn) => urn !== undefined))];
      // Terraform lists a resource with a key also without its key.
      const exact = known.filter((urn) => !known.some((other) => other.startsWith(`${urn}[`)));
      return [propertyOf(type, name), urns.includes(undefined) ? [] : exact] as const;
    });
    return Object.fromEntries(entries);
  }

  /** The URNs of the resources in `depends_on`. */
  #dependencies(address: string): string[] {
    const { depends_on: list = [] } = this.#configured.get(withoutKeys(address)) ?? {};
    return list.flatMap((reference) => this.#referenced(reference, address) ?? []);
  }

  /** The URN of the resource of this provider to which a reference in the resource with this address refers. */
  #referenced(reference: string, address: string): string | undefined {
    const module = /^(?:module\.[^.]+\.)*/.exec(address)?.[0] ?? "";
    const [, referenced, own] = /^((\w+)\.[\w-]+(?:\[(?:\d+|"[^"\\]*")\])?)(?:\.|$)/.exec(reference) ?? [];
    const isOwnKind = referenced !== undefined && own !== undefined && kinds.has(own);
    return isOwnKind ? this.#named(module + referenced, own).urn : undefined;
  }

  /** The drift of a resource; an empty list if the inputs and outputs do not differ. */
  drift({ address, type, change }: ResourceChange): Step[] {
    if (!change.before) return [];
    const before = this.#values(address, type, change.before);
    const after = change.after ? this.#values(address, type, change.after) : undefined;
    const fields = after
      ? refreshedFields(propsOf(before), propsOf(after)).filter(this.#isReverted(address, type, after))
      : [];
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

  /**
   * Returns a filter for manual changes that an apply would revert. The filter omits a change that the configuration
   * ignores (`ignore_changes`), and a change to the value that the configuration also declares. A plan with
   * `-refresh-only` does not show which changes an apply would revert, so all changes remain.
   */
  #isReverted(address: string, type: string, live: RowValues): (field: FieldChange) => boolean {
    const planned = this.#changes.get(address);
    if (!planned?.after) return () => true;
    const values = this.#values(address, type, markedRow(planned), true);
    const wanted = fieldDiff(propsOf(live).inputs, propsOf(values).inputs);
    const paths = new Set(wanted.map(({ path }) => path));
    // For an argument that the configuration omits, a plan contains no declared value. A manual change of such an
    // argument counts as drift.
    const declared = this.#configured.get(withoutKeys(address))?.expressions ?? {};
    const isDeclared = (path: string) => terraformName(path.split(".", 1)[0] ?? "") in declared;
    return ({ path, outputOnly }) => outputOnly === true || paths.has(path) || !isDeclared(path);
  }

  /** The resource in the state; an empty list if the resource does not exist yet. */
  resource({ address, type, change }: ResourceChange): StateResource[] {
    if (!change.before) return [];
    const { inputs, outputs } = this.#values(address, type, change.before);
    const { urn, type: own } = this.#named(address, type);
    return [{ urn, type: own, ...idOf(change.before), inputs, outputs: { ...inputs, ...outputs } }];
  }

  #named(address: string, type: string): Pick<Step, "urn" | "type" | "name"> {
    const own = OWN_PLUGIN + (kinds.get(type)?.definition.name ?? type);
    const { project, stack } = this.place;
    return { urn: makeUrn(stack, project, "", own, address), type: own, name: address };
  }

  /**
   * Returns the inputs and outputs from the attributes of a resource.
   * @param planned true for values after the apply. Unknown values that the configuration does not set are then
   * omitted, since the service sets these values.
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
    const provider = this.blocks.settingsOf(this.#configured.get(withoutKeys(address)));
    return { ...shownValues({ ...propsOf(values), retainOnDelete }), provider };
  }

  #shownAfter(address: string, type: string, values: RowValues) {
    const propertyDependencies = this.#references(address, type);
    const dependencies = this.#dependencies(address);
    const { references, dependsOn } = shownValues({ ...propsOf(values), propertyDependencies, dependencies });
    return {
      ...this.#shown(address, values),
      ...(references && { references }),
      ...(dependsOn && { dependsOn }),
    };
  }
}

/** Returns the instructions to the run in the attributes of a resource, such as `adopt`. */
const instructionsIn = (type: string, row: Row): Values =>
  valuesOf(
    (kinds.get(type)?.attributes ?? []).filter(({ role }) => role === "instruction"),
    row,
  );

/** Returns the references in the expression of an argument, which is nested like the value of the argument. */
function referencesIn(given: unknown): readonly string[] {
  if (Array.isArray(given)) return given.flatMap(referencesIn);
  const { success, data } = expression.safeParse(given);
  if (!success) return [];
  const { references, constant_value: _constant, ...nested } = data;
  return references ?? Object.values(nested).flatMap(referencesIn);
}

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
  // If the id after an update is unknown before the apply, the update replaces the object.
  return typeof unknown === "object" && unknown.id === true ? "replace" : "update";
}

const markedRow = ({ after, after_unknown: unknown }: ResourceChange["change"]) =>
  marked(after, unknown) as Row;

/** Returns a value in which {@link UNKNOWN} replaces each part that is unknown before the apply. */
function marked(value: unknown, unknown: unknown): unknown {
  if (unknown === true) return UNKNOWN;
  if (Array.isArray(unknown)) {
    const items = Array.isArray(value) ? value : [];
    return Array.from({ length: Math.max(items.length, unknown.length) }, (_, index) =>
      marked(items[index], unknown[index]),
    );
  }
  if (typeof unknown !== "object" || unknown === null) return value;
  const row = value as Row | null;
  const members = Object.entries(unknown).map(([name, inner]) => [name, marked(row?.[name], inner)]);
  return { ...row, ...Object.fromEntries(members) };
}

/** An address without keys: `module.a["x"].gatehouse_tag.b[0]` becomes `module.a.gatehouse_tag.b`. */
const withoutKeys = (address: string): string => address.replaceAll(/\[(?:\d+|"(?:[^"\\]|\\.)*")\]/g, "");
