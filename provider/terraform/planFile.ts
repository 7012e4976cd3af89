import { tenantId } from "@gatehouse-access/sdk/contract";
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
import { type Row, terraformName, typeNameOf, valuesOf } from "./types.ts";
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
  /** What of the plan cannot be looked at, as sentences. */
  readonly unseen: readonly string[];
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
  /** Whether the configuration gives the address of the service by a variable alone. */
  readonly isUrlAlone: (variable: string) => boolean;
}

/**
 * Reads a plan that `terraform show -json` wrote.
 * @throws EngineError (`plan_file`) where it is none
 */
export function readTerraformPlan(text: string, origin: PlanOrigin): TerraformPlan {
  const { name, workspace: place } = origin;
  const json = parsePlan(text, name);
  const reader = new PlanReader(json, origin);
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
    unseen: [...incomplete(json), ...reader.unseen()],
    work: () => workOf(json, settings, (type) => kinds.get(type)?.attributes ?? []),
  };
}

/** What a plan says of itself that it leaves out. */
function incomplete({ errored, deferred_changes: deferred }: PlanJson): string[] {
  const own = deferred.filter(({ resource_change: { type } }) => kinds.has(type));
  return [
    ...(errored ? ["the plan is of a run that failed: it does not have all that an apply would do"] : []),
    ...own.map(
      ({ reason, resource_change: { address } }) =>
        `${address}: its change is put off to a later plan${reason === undefined ? "" : ` (${reason})`}`,
    ),
  ];
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
  readonly #origin: PlanOrigin;
  readonly #configured: ReadonlyMap<string, ConfiguredResource>;
  /** What an apply would do, by address. */
  readonly #changes: ReadonlyMap<string, ResourceChange["change"]>;
  /** Settings of provider configurations, by their keys. */
  readonly #settings = new Map<string, Settings>();

  constructor(json: PlanJson, origin: PlanOrigin) {
    this.#json = json;
    this.#origin = origin;
    this.#configured = configuredResources(json);
    this.#changes = new Map(json.resource_changes.map(({ address, change }) => [address, change]));
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
    const fields = after
      ? refreshedFields(propsOf(before), propsOf(after)).filter(this.#isUndone(address, type, after))
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
   * Whether an apply would undo a change by hand: it does not where the configuration ignores it (`ignore_changes`), or says
   * the same by now. A plan that only refreshes does not tell.
   */
  #isUndone(address: string, type: string, live: RowValues): (field: FieldChange) => boolean {
    const planned = this.#changes.get(address);
    if (!planned?.after) return () => true;
    const row = marked(planned.after, planned.after_unknown) as Row;
    const wanted = fieldDiff(propsOf(live).inputs, propsOf(this.#values(address, type, row, true)).inputs);
    const paths = new Set(wanted.map(({ path }) => path));
    // What the configuration leaves out is no part of the plan: nobody declares it, and it is drift as elsewhere.
    const declared = this.#configured.get(withoutKeys(address))?.expressions ?? {};
    const isDeclared = (path: string) => terraformName(path.split(".", 1)[0] ?? "") in declared;
    return ({ path, outputOnly }) => outputOnly === true || paths.has(path) || !isDeclared(path);
  }

  /** The resource in the state; nothing for one that is still to be made. */
  resource({ address, type, change }: ResourceChange): StateResource[] {
    if (!change.before) return [];
    const { inputs, outputs } = this.#values(address, type, change.before);
    const { urn, type: own } = this.#named(address, type);
    return [{ urn, type: own, ...idOf(change.before), inputs, outputs: { ...inputs, ...outputs } }];
  }

  /** The settings of the provider configuration without an alias; without such a one, those that all of them share. */
  settings(): ReadonlyMap<string, string> {
    const keys = this.#keys();
    const key = keys.find((one) => one === "gatehouse") ?? keys[0] ?? "gatehouse";
    const isShared = (name: keyof Settings, value: unknown) =>
      key === "gatehouse" || keys.every((other) => this.#settingsOf(other)[name] === value);
    const found = Object.entries(this.#settingsOf(key)).filter(
      (entry): entry is [keyof Settings, string] =>
        typeof entry[1] === "string" &&
        entry[1] !== UNKNOWN &&
        isShared(entry[0] as keyof Settings, entry[1]),
    );
    return new Map(found.map(([name, value]) => [`gatehouse:${name}`, value]));
  }

  /** Settings that the plan does not tell, as sentences. */
  unseen(): string[] {
    return this.#keys().flatMap((key) => {
      const settings = this.#settingsOf(key);
      const block = `provider ${key}`;
      return [
        ...(settings.url === UNKNOWN
          ? [
              `${block}: its url cannot be told from the plan, so that its resources may be on another service than the reviewed one; give the address as text or by a variable alone, or leave it to GATEHOUSE_URL`,
            ]
          : []),
        ...(settings.tenant === UNKNOWN
          ? [
              `${block}: its tenant cannot be told from the plan, so that its resources may be in another namespace than the reviewed one; give the id as text or by a variable alone, or leave it to GATEHOUSE_TENANT`,
            ]
          : []),
      ];
    });
  }

  /** The keys of the provider configurations that this provider's resources have, in order. */
  #keys(): string[] {
    const own = [...this.#configured.values()].filter(({ type }) => kinds.has(type));
    const used = own.map(({ provider_config_key: key }) => key).filter((key) => key !== undefined);
    const plain = "gatehouse" in this.#json.configuration.provider_config ? ["gatehouse"] : [];
    return [...new Set([...plain, ...used.toSorted()])];
  }

  #named(address: string, type: string): Pick<Step, "urn" | "type" | "name"> {
    const own = OWN_PLUGIN + (kinds.get(type)?.definition.name ?? type);
    const { project, stack } = this.#origin.workspace;
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
    const key = this.#configured.get(withoutKeys(address))?.provider_config_key ?? "gatehouse";
    const { url } = this.#settingsOf(key);
    const shown = shownValues({ ...propsOf(values), retainOnDelete });
    // What cannot be told is taken for the reviewed service, and said in `unseen`.
    return { ...shown, ...(typeof url === "string" && url !== UNKNOWN && { provider: { url } }) };
  }

  #settingsOf(key: string): Settings {
    const known = this.#settings.get(key);
    if (known) return known;
    const { provider_config: all } = this.#json.configuration;
    const { expressions = {} } = all[key] ?? all[key.split(":").at(-1) ?? ""] ?? {};
    // A plan has the values of the root module's variables alone.
    const variables = key.includes(":") ? {} : this.#json.variables;
    const url = given(expressions.url, variables, this.#origin.isUrlAlone);
    // No text around an id makes another id of it.
    const tenant = given(expressions.tenant, variables, (_name, value) => tenantId.safeParse(value).success);
    const settings = { ...(url !== undefined && { url }), ...(tenant !== undefined && { tenant }) };
    this.#settings.set(key, settings);
    return settings;
  }
}

/**
 * What an expression gives: a constant, or the value of a variable; unknown where it is neither, and undefined for null.
 * @param isAlone whether an expression that refers to this variable alone, with this value, is the variable itself
 */
function given(
  written: unknown,
  variables: PlanJson["variables"],
  isAlone: (variable: string, value: unknown) => boolean,
): unknown {
  const parsed = expression.safeParse(written);
  if (!parsed.success) return undefined;
  const { constant_value: constant, references = [] } = parsed.data;
  // What was written as JSON comes as it was written: templates count as constants there.
  const isTemplate = typeof constant === "string" && /[$%]\{/.test(constant);
  if (constant !== undefined && !isTemplate) return constant;
  const [, name] = (references.length === 1 && /^var\.([\w-]+)$/.exec(references[0] ?? "")) || [];
  const variable = name === undefined ? undefined : variables[name];
  if (name === undefined || !variable) return UNKNOWN;
  const isTold = isTemplate ? constant === `\${var.${name}}` : isAlone(name, variable.value);
  return isTold ? (variable.value ?? undefined) : UNKNOWN;
}

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
