import { isDeepStrictEqual } from "node:util";
import {
  type FieldChange,
  fieldDiff,
  makeUrn,
  OWN_PLUGIN,
  type ResourceValues,
  refreshedFields,
  type StateResource,
  type Step,
  type StepOp,
  shownValues,
} from "../../engine/index.ts";
import { UNKNOWN } from "../../engineMarks.ts";
import { canonical, sameValue } from "../../model/values.ts";
import { definitions } from "../../resources/index.ts";
import { type Attribute, attributesOf } from "../../terraform/attributes.ts";
import {
  fromTerraform,
  hasType,
  type Row,
  type Type,
  terraformName,
  toTerraform,
  typeNameOf,
  valuesOf,
} from "../../terraform/types.ts";
import type { Workspace } from "../../terraform/workspace.ts";
import type { Values } from "../../values.ts";
import type { ConfigurationFacts } from "./configurationFacts.ts";
import {
  type ConfiguredResource,
  configuredResources,
  expression,
  objectKey,
  type PlanJson,
  type ResourceChange,
  withoutKeys,
} from "./planJson.ts";
import { expressionValue, isOwnBlock, ProviderBlocks, type ResourceTenant } from "./providerBlocks.ts";

/** The resource types of this provider, by their names in Terraform. */
export const kinds = new Map(
  definitions.map((definition) => [
    typeNameOf(definition),
    { definition, attributes: attributesOf(definition) },
  ]),
);

/** The origin of a plan: its name, its workspace, and its root module. */
export interface PlanOrigin extends ConfigurationFacts {
  /** Name of the plan in errors. */
  readonly name: string;
  /** The workspace. Its project is the project in the environment, or else the base name of the folder. */
  readonly workspace: Workspace;
  /**
   * True if the environment sets the project.
   * @default false
   */
  readonly isProjectNamed?: boolean;
}

/** The inputs and outputs of a resource, by property. */
interface RowValues {
  readonly inputs: Values;
  readonly outputs: Values;
}

/**
 * Converts the resources of a Terraform plan to the form of Pulumi resources, which are steps with inputs and outputs.
 */
export class PlanReader {
  /**
   * The workspace of the plan. If the provider block sets a known project, it overrides the project of the workspace.
   */
  readonly place: Workspace;
  readonly #configured: ReadonlyMap<string, ConfiguredResource>;
  readonly #changes: ReadonlyMap<string, ResourceChange["change"]>;
  readonly #origin: PlanOrigin;
  /** The out-of-band changes that the refresh of the plan found. */
  readonly #drift: ReadonlyMap<string, ResourceChange>;
  readonly #variables: PlanJson["variables"];
  readonly blocks: ProviderBlocks;

  constructor(json: PlanJson, changes: readonly ResourceChange[], origin: PlanOrigin) {
    this.#configured = configuredResources(json);
    this.#origin = origin;
    this.#variables = json.variables;
    this.#drift = new Map(json.resource_drift.map((change) => [objectKey(change), change]));
    const own = [...this.#configured.values()].filter(
      ({ type, provider_config_key: key }) => kinds.has(type) && (key === undefined || isOwnBlock(json, key)),
    );
    const planned = new Set(json.resource_changes);
    const tenants = changes.flatMap((resource): ResourceTenant[] => {
      const { address, type, change } = resource;
      const block = this.#configured.get(withoutKeys(address));
      const hasTenant = kinds.get(type)?.definition.inputs.tenant !== undefined;
      if (!block || !change.after || !hasTenant || "tenant" in block.expressions) return [];
      const { tenant } = markedRow(change);
      return [{ resource: block, tenant, isPlanned: planned.has(resource) }];
    });
    this.blocks = new ProviderBlocks(json, own, origin, tenants);
    const { project, stack } = origin.workspace;
    this.place = { project: this.blocks.shared().get("gatehouse:project") ?? project, stack };
    this.#changes = new Map(json.resource_changes.map((change) => [objectKey(change), change.change]));
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
      op,
      fields,
      ...(isForgotten && { retained: true as const }),
      ...(change.replace_paths.length > 0 && {
        replaceKeys: change.replace_paths.map(([name]) => propertyOf(type, String(name))),
      }),
      ...(before && { before: this.#shown(address, before, isForgotten) }),
      ...(after && { after: this.#shownAfter(address, type, after) }),
    };
  }

  /**
   * Returns the URNs of the resources to which the arguments of a resource refer, by property. Returns no URNs for an
   * argument that may also refer to other objects.
   */
  #references(address: string, type: string): Readonly<Record<string, readonly string[]>> {
    const { expressions = {} } = this.#configured.get(withoutKeys(address)) ?? {};
    const entries = Object.entries(expressions).map(([name, given]) => {
      const urns = referencesIn(given).map((reference) => this.#referenced(reference, address));
      const known = [...new Set(urns.filter((urn) => urn !== undefined))];
      // For a reference to a resource with a key, Terraform also lists the resource without the key.
      const exact = known.filter((urn) => !known.some((other) => other.startsWith(`${urn}[`)));
      return [propertyOf(type, name), urns.includes(undefined) ? [] : exact] as const;
    });
    return Object.fromEntries(entries);
  }

  /** Returns the URNs of the resources in `depends_on`. */
  #dependencies(address: string): string[] {
    const { depends_on: list = [] } = this.#configured.get(withoutKeys(address)) ?? {};
    return list.flatMap((reference) => this.#referenced(reference, address) ?? []);
  }

  /**
   * Returns the URN of the resource to which a reference refers. Returns undefined if the reference does not refer to a
   * resource of this provider.
   * @param address the address of the resource that contains the reference
   */
  #referenced(reference: string, address: string): string | undefined {
    const module = /^(?:module\.[^.]+\.)*/.exec(address)?.[0] ?? "";
    const [, referenced, own] =
      /^((\w+)\.[\p{ID_Continue}-]+(?:\[(?:\d+|"[^"\\]*")\])?)(?:\.|$)/u.exec(reference) ?? [];
    const isOwnKind = referenced !== undefined && own !== undefined && kinds.has(own);
    return isOwnKind ? this.#named(module + referenced, own).urn : undefined;
  }

  /**
   * Returns the attributes of a resource in the state before the refresh of the plan. Returns undefined if the resource
   * is not in the state.
   */
  stateOf(resource: ResourceChange): Row | undefined {
    return (this.#drift.get(objectKey(resource)) ?? resource).change.before ?? undefined;
  }

  /**
   * Returns a list with the out-of-band change to a resource that the refresh of the plan found. The list is empty if
   * the object matches the state.
   */
  plannedDrift(resource: ResourceChange): Step[] {
    const change = this.#drift.get(objectKey(resource))?.change;
    if (!change?.before) return [];
    const { address, type } = resource;
    const live = change.after ? this.#values(address, type, change.after) : undefined;
    return this.drift(resource, change.before, live);
  }

  /**
   * Returns a list with the out-of-band change to a resource. The list is empty if the object matches the state.
   * @param row the resource in the state
   * @param live the live object; undefined if it no longer exists
   */
  drift(resource: ResourceChange, row: Row, live: RowValues | undefined): Step[] {
    const { address, type } = resource;
    const before = this.#values(address, type, row);
    const fields = live
      ? refreshedFields(propsOf(before), propsOf(live)).filter(this.#isReverted(resource, live))
      : [];
    if (live && fields.length === 0) return [];
    return [
      {
        ...this.#named(address, type),
        ...idOf(row),
        op: live ? "update" : "delete",
        fields,
        before: this.#shown(address, before),
        ...(live && { after: this.#shown(address, live) }),
      },
    ];
  }

  /** Returns the step of a resource without drift. */
  unchanged({ address, type }: ResourceChange, row: Row, live: RowValues): Step {
    const before = this.#shown(address, live);
    return { ...this.#named(address, type), ...idOf(row), op: "same", fields: [], before, after: before };
  }

  /**
   * Returns the inputs and outputs of a live object. A value that is equal to the value in the state keeps the notation
   * of the state.
   * @param row the resource in the state
   * @param live the inputs and outputs of the object
   */
  liveValues({ type }: ResourceChange, row: Row, live: Values): RowValues {
    const attributes = kinds.get(type)?.attributes ?? [];
    const of = (role: "input" | "output") =>
      Object.fromEntries(
        attributes.flatMap((attribute) => {
          if (attribute.role !== role) return [];
          const { name, property, type: valueType } = attribute;
          const before = fromTerraform(valueType, row[name]);
          const now = live[property] ?? undefined;
          const isSame =
            attribute.role === "input"
              ? sameValue(attribute.field, before, now)
              : isSameOutput(valueType, before, now);
          const value = isSame ? before : now;
          return value === undefined ? [] : [[property, value]];
        }),
      );
    return { inputs: of("input"), outputs: of("output") };
  }

  /**
   * Returns the inputs and outputs of a resource in the state, in canonical form. A read of the live object needs this
   * form.
   */
  canonicalState({ type }: ResourceChange, row: Row): Record<string, unknown> {
    const attributes = kinds.get(type)?.attributes ?? [];
    const values = valuesOf(
      attributes.filter(({ role }) => role === "input" || role === "output"),
      row,
    );
    const inputs = attributes.flatMap((attribute) =>
      attribute.role === "input" && values[attribute.property] !== undefined
        ? [[attribute.property, canonical(attribute.field, values[attribute.property])] as const]
        : [],
    );
    return { ...values, ...Object.fromEntries(inputs) };
  }

  /**
   * Returns the planned step of a resource whose live object differs from the prior state of the plan. The step starts
   * from the live object. Its `fields` are the changes that the configuration makes to the object. They omit the
   * out-of-band changes that the step reverts, and the changes that the live object already has.
   * @param row the resource in the state before the refresh of the plan
   */
  stepFromLive(resource: ResourceChange, row: Row, live: RowValues): Step {
    const { address, type, change } = resource;
    const step = this.step(resource);
    const before = this.#shown(address, live, change.actions.includes("forget"));
    const { after } = step;
    if (!change.after || !after) return { ...step, ...idOf(row), before };
    const planned = this.#values(address, type, markedRow(change), true);
    const changedFrom = ({ inputs }: RowValues) =>
      new Set(fieldDiff(propsOf({ inputs, outputs: {} }).inputs, propsOf(planned).inputs).map(pathOf));
    const [fromState, fromLive] = [changedFrom(this.#values(address, type, row)), changedFrom(live)];
    const fields = step.fields.filter(({ path }) => fromState.has(path) && fromLive.has(path));
    const isDone = step.fields.length > 0 && fields.length === 0;
    const op = isDone ? "same" : step.op === "create" ? "update" : step.op;
    const kept = withValuesOf(after, before, this.#ignored(address, type));
    return { ...step, ...idOf(row), op, fields, before, after: kept };
  }

  /** Returns the paths of the inputs whose changes the configuration ignores (`ignore_changes`). */
  #ignored(address: string, type: string): string[] {
    const block = withoutKeys(address);
    // If the block of a resource was removed, a file that was not part of the plan may still declare the resource.
    const paths = (this.#configured.has(block) && this.#origin.ignoredChanges?.(block)) || [];
    return paths.flatMap((path) => {
      if (path === "all") return ["*"];
      // An entry with an index is not the path of a field, so changes to the field are not ignored.
      if (!/^\w+(?:\.\w+)*$/.test(path)) return [];
      const [name = "", ...inner] = path.split(".");
      return [[propertyOf(type, name), ...inner.map(propertyName)].join(".")];
    });
  }

  /**
   * Returns a filter for out-of-band changes that an apply would revert. The filter excludes changes that the
   * configuration ignores (`ignore_changes`), and changes to exactly the value that the configuration declares. A plan
   * with `-refresh-only` does not show which changes an apply would revert, so the filter then includes all changes.
   */
  #isReverted(resource: ResourceChange, live: RowValues): (field: FieldChange) => boolean {
    const { address, type } = resource;
    const planned = this.#changes.get(objectKey(resource));
    if (!planned?.after) return () => true;
    const values = this.#values(address, type, markedRow(planned), true);
    const wanted = fieldDiff(propsOf(live).inputs, propsOf(values).inputs);
    const paths = new Set(wanted.map(({ path }) => path));
    return ({ path, outputOnly }) =>
      outputOnly === true || paths.has(path) || !this.#isDeclared(resource, planned, path);
  }

  /**
   * Returns true if the configuration declares the planned value of the field at a path. If the configuration omits an
   * argument or sets it to null, the planned value is the value after the refresh of the plan. This value is not a
   * declared value, so an out-of-band change to the argument is treated as drift.
   */
  #isDeclared({ address, type }: ResourceChange, planned: ResourceChange["change"], path: string): boolean {
    const name = terraformName(path.split(".", 1)[0] ?? "");
    const { expressions = {} } = this.#configured.get(withoutKeys(address)) ?? {};
    if (!(name in expressions)) return false;
    const attribute = kinds.get(type)?.attributes.find((one) => one.name === name);
    if (attribute?.role !== "input") return true;
    const { field, type: valueType } = attribute;
    const canBeNull = !field.required || field.default !== undefined;
    const row = markedRow(planned);
    if (!canBeNull || !isDeepStrictEqual(row[name], planned.before?.[name])) return true;
    // A plan contains the values of the root module's variables, but not those of child modules.
    const isInModule = address.startsWith("module.");
    const variableOf = (variable: string) =>
      !isInModule && this.#origin.isInPlan(variable) ? this.#variables[variable] : undefined;
    // If the expression contains more than the variable, its value is different, and the comparison below detects the
    // difference.
    const written = expressionValue(expressions[name], variableOf, () => true);
    if (written === undefined || written === null || !hasType(valueType, written)) return false;
    return sameValue(field, fromTerraform(valueType, written), fromTerraform(valueType, row[name]));
  }

  /**
   * Returns a list with the resource in the state. The list is empty if the resource does not exist yet.
   * @param row the attributes of the resource; default: the attributes after the refresh of the plan
   */
  resource({ address, type, change }: ResourceChange, row = change.before): StateResource[] {
    if (!row) return [];
    const { inputs, outputs } = this.#values(address, type, row);
    const { urn, type: own } = this.#named(address, type);
    const ignoreChanges = this.#ignored(address, type);
    return [
      {
        urn,
        type: own,
        ...idOf(row),
        inputs,
        outputs: { ...inputs, ...outputs },
        ...(ignoreChanges.length > 0 && { ignoreChanges }),
      },
    ];
  }

  /**
   * Returns the address of the service of a resource. Returns the mark {@link UNKNOWN} if the plan does not contain the
   * address.
   */
  serviceOf({ address }: ResourceChange): string | undefined {
    return this.blocks.serviceOf(this.#configured.get(withoutKeys(address)));
  }

  #named(address: string, type: string): Pick<Step, "urn" | "type" | "name"> {
    const own = OWN_PLUGIN + (kinds.get(type)?.definition.name ?? type);
    const { project, stack } = this.place;
    return { urn: makeUrn(stack, project, "", own, address), type: own, name: address };
  }

  /**
   * Returns the inputs and outputs from the attributes of a resource.
   * @param planned true for values after the apply. Omits unknown values that the configuration does not set, since the
   *   service sets these values.
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

/** Returns the attributes of a resource that are instructions for the run, such as `adopt`. */
const instructionsIn = (type: string, row: Row): Values =>
  valuesOf(
    (kinds.get(type)?.attributes ?? []).filter(({ role }) => role === "instruction"),
    row,
  );

/**
 * Returns the references in the expression of an argument. The expression has the same nesting as the value of the
 * argument.
 */
function referencesIn(given: unknown): readonly string[] {
  if (Array.isArray(given)) return given.flatMap(referencesIn);
  const { success, data } = expression.safeParse(given);
  if (!success) return [];
  const { references, constant_value: _constant, ...nested } = data;
  return references ?? Object.values(nested).flatMap(referencesIn);
}

const propsOf = ({ inputs, outputs }: RowValues) =>
  ({ inputs, outputs: { ...inputs, ...outputs } }) as Parameters<typeof refreshedFields>[0];

const pathOf = ({ path }: FieldChange): string => path;

/** Converts an attribute name of Terraform to a property name: `source_ip` to `sourceIp`. */
const propertyName = (name: string): string =>
  name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/**
 * Returns a copy of `values`. The inputs at the given paths have their values from `others`. Ignores paths inside an
 * input, such as `filter.tags`.
 */
function withValuesOf(
  values: ResourceValues,
  others: ResourceValues,
  paths: readonly string[],
): ResourceValues {
  const picked = (of: ResourceValues["inputs"]) =>
    Object.fromEntries(
      Object.entries(of).filter(
        ([name]) => name in others.inputs && (paths.includes(name) || paths.includes("*")),
      ),
    );
  return {
    ...values,
    inputs: { ...values.inputs, ...picked(others.inputs) },
    outputs: { ...values.outputs, ...picked(others.outputs) },
  };
}

/** Returns true if two values of an output are equal. The order of items in a set is ignored. */
function isSameOutput(type: Type, left: unknown, right: unknown): boolean {
  const [one, other] = [toTerraform(type, left), toTerraform(type, right)];
  if (type.kind !== "set" || !Array.isArray(one) || !Array.isArray(other))
    return isDeepStrictEqual(one, other);
  const sorted = (items: readonly unknown[]) => items.map((item) => JSON.stringify(item)).sort();
  return isDeepStrictEqual(sorted(one), sorted(other));
}

const idOf = (row: Row | null): { readonly id?: string } =>
  typeof row?.id === "string" ? { id: row.id } : {};

const propertyOf = (type: string, name: string): string =>
  kinds.get(type)?.attributes.find((attribute) => attribute.name === name)?.property ?? name;

function opOf({ actions, importing, after_unknown: unknown }: ResourceChange["change"]): StepOp {
  if (actions.includes("delete") || actions.includes("forget"))
    return actions.includes("create") ? "replace" : "delete";
  if (actions.includes("create")) return "create";
  if (!actions.includes("update")) return importing ? "import" : "same";
  // An update that changes the id is a replacement. In this case, the plan marks the id as unknown before the apply.
  return typeof unknown === "object" && unknown.id === true ? "replace" : "update";
}

/**
 * Returns the planned attributes of a resource. The mark {@link UNKNOWN} replaces values that are not known before the
 * apply.
 */
export const markedRow = ({ after, after_unknown: unknown }: ResourceChange["change"]) =>
  marked(after, unknown) as Row;

/**
 * Returns true if a value or a part of it is marked as unknown before the apply.
 * @param unknown the marks of the value, in the form of `after_unknown` in a plan
 */
export const hasMark = (unknown: unknown): boolean =>
  unknown === true ||
  (typeof unknown === "object" && unknown !== null && Object.values(unknown).some(hasMark));

/** Returns a value in which the mark {@link UNKNOWN} replaces each part that is not known before the apply. */
function marked(value: unknown, unknown: unknown): unknown {
  if (unknown === true) return UNKNOWN;
  const isPlain = value !== null && value !== undefined && typeof value !== "object";
  if (isPlain || !hasMark(unknown)) return value;
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
