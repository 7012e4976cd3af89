import type { Declaration } from "@gatehouse-access/sdk";
import { declaredByText } from "@gatehouse-access/sdk/contract";
import { withCode } from "@gatehouse-access/sdk/errors";
import { UNKNOWN } from "../../engineMarks.ts";
import { plannedUpdate } from "../../lifecycle/diff.ts";
import type { ResourceLifecycle } from "../../lifecycle/lifecycle.ts";
import { markIn } from "../../lifecycle/runRecord.ts";
import { currentState, type Existing, type ResourceDefinition } from "../../model/definition.ts";
import { UnfinishedError } from "../../model/unfinishedError.ts";
import { canonical, hasUnknown, sameValue } from "../../model/values.ts";
import { ResourceError, type ResourceFault, said } from "../../resourceError.ts";
import { type Attribute, attributesOf } from "../../terraform/attributes.ts";
import {
  fromTerraform,
  type Row,
  type Type,
  toTerraform,
  typeNameOf,
  valuesOf,
} from "../../terraform/types.ts";
import type { Values } from "../../values.ts";
import { type Diagnostic, errorAt, failureDiagnostic } from "./diagnostics.ts";
import { newInstance, type PrivateData } from "./privateData.ts";

/**
 * The value of an omitted instruction, such as `adopt`, in the state. A plan must not contain a change if only an
 * instruction has changed. The plan therefore keeps the value in the state. Terraform allows this only if that value is
 * not null.
 */
const NO_INSTRUCTION = "false";

/** The result of planning a change. */
interface PlannedChange {
  readonly planned: Row;
  /** Names of the attributes that require a replacement. */
  readonly replaces: readonly string[];
  readonly errors: readonly Diagnostic[];
  /**
   * The data for the preview of an update: the id of the object, its values before the update, and the declared inputs.
   * Undefined for any other change.
   */
  readonly update?: { readonly id: string; readonly state: Values; readonly inputs: Values };
}

/** A row of the state after an apply, with its private data. */
interface AppliedRow {
  readonly row: Row;
  readonly data: PrivateData;
}

/** A resource type in Terraform. It plans and applies changes, and converts objects to and from rows of the state. */
export class TerraformResource {
  readonly definition: ResourceDefinition;
  readonly typeName: string;
  readonly attributes: readonly Attribute[];

  constructor(definition: ResourceDefinition) {
    this.definition = definition;
    this.typeName = typeNameOf(definition);
    this.attributes = attributesOf(definition);
  }

  /** Validates the known values of a configuration, and returns the errors. Sends no request. */
  validate(lifecycle: ResourceLifecycle, config: Row): Diagnostic[] {
    const { failures } = lifecycle.check(undefined, {}, this.#declared(config));
    return this.#diagnostics(this.#failures(config, failures));
  }

  /**
   * Returns all failed checks of a configuration, including the checks that only the Terraform provider makes.
   * @param ofModel the failures of the checks that all front ends make
   */
  #failures(config: Row, ofModel: readonly ResourceError[]): ResourceError[] {
    const faults = this.attributes.flatMap((attribute) => ownFaults(attribute, config));
    return [...faults.map((fault) => new ResourceError(this.definition.name, fault)), ...ofModel];
  }

  #diagnostics(failures: readonly ResourceError[]): Diagnostic[] {
    return failures.map((failure) => failureDiagnostic(this.definition, failure));
  }

  /**
   * Plans the change from the state to a configuration. Sends requests only if the change needs a capability that some
   * servers lack.
   * @param name a name for the resource. Errors about two resources with the same object use it. It must be the same in
   *   all calls for one resource
   * @param prior the state; undefined for a new resource
   * @param declarer the resource that declared the object when the state was written; undefined if the state does not
   *   contain it
   */
  async plan(
    lifecycle: ResourceLifecycle,
    name: string,
    config: Row,
    prior: Row | undefined,
    { declarer }: PrivateData = {},
  ): Promise<PlannedChange> {
    const olds = prior ? this.valuesIn(prior) : {};
    const { inputs, failures } = lifecycle.check(name, olds, this.#declared(config));
    const invalid = this.#failures(config, failures);
    const errors = this.#diagnostics(
      invalid.length > 0 ? invalid : await lifecycle.unsupported(name, olds, inputs),
    );
    if (errors.length > 0) return { planned: config, replaces: [], errors };
    const created = () => ({
      planned: this.#plannedCreate(config, inputs),
      replaces: [],
      errors: missingSecrets(this.attributes, config),
    });
    if (!prior) return created();
    const isRequested = this.#newVersions(config, prior, "secretVersion").length > 0;
    const news = this.#withoutSameSecrets(config, prior, inputs);
    const id = idIn(prior);
    const { changes, replaces, claims } = lifecycle.diff(name, id, olds, news, { isRequested, declarer });
    if (changes.length === 0 && !isRequested) {
      const versions = this.#newVersions(config, prior, "secretInputVersion");
      const changed = versions.map(({ name }) => [name, config[name]]);
      const planned = { ...prior, ...Object.fromEntries(changed), ...(claims && this.#claimed()) };
      return { planned, replaces: [], errors: [] };
    }
    if (this.definition.rotation && replaces.length > 0) return created();
    const changed = new Set(changes.map(({ field }) => field));
    return {
      planned: this.#plannedUpdate(config, prior, plannedUpdate(this.definition, olds, news), changed),
      replaces: this.attributes.filter(({ property }) => replaces.includes(property)).map(({ name }) => name),
      errors: [],
      ...(replaces.length === 0 && { update: { id, state: olds, inputs: news } }),
    };
  }

  /**
   * Returns the planned values of an update that only claims the object for this resource. Terraform applies an update
   * only if a value changes, so the plan shows one output as unknown. This is an output that can change without an
   * update, or else the last output. Configurations rarely refer to these outputs.
   */
  #claimed(): Row {
    const outputs = this.attributes.filter(({ role }) => role === "output");
    const isVolatile = (attribute: Attribute) => attribute.role === "output" && attribute.field.volatile;
    const shown = outputs.findLast(isVolatile) ?? outputs.at(-1);
    return shown ? { [shown.name]: UNKNOWN } : {};
  }

  /**
   * Converts a row of the state to inputs and outputs in the canonical form that all front ends use. The row itself
   * keeps the notation of the configuration.
   */
  valuesIn(row: Row): Record<string, unknown> {
    const values = this.#valuesOf(row, "input", "output");
    const inCanonicalForm = this.attributes.flatMap((attribute) => {
      const { property } = attribute;
      if (attribute.role !== "input" || values[property] === undefined) return [];
      return [[property, canonical(attribute.field, values[property])] as const];
    });
    return { ...values, ...Object.fromEntries(inCanonicalForm) };
  }

  /** Returns the inputs that a configuration declares, in the form that {@link ResourceLifecycle.check} accepts. */
  #declared(config: Row): Record<string, unknown> {
    return this.#valuesOf(config, "input", "secretInput", "instruction");
  }

  #valuesOf(row: Row, ...roles: readonly Attribute["role"][]): Record<string, unknown> {
    return valuesOf(
      this.attributes.filter(({ role }) => roles.includes(role)),
      row,
    );
  }

  /**
   * Returns the keys that identify the object of a row. The row can be a planned row or a row of the state. Empty if
   * the keys are unknown, or if resources of this type have no object on the service.
   */
  objectKeys(row: Row): readonly string[] {
    const { identity, outputs } = this.definition;
    const inputs = this.valuesIn(row);
    if (Object.keys(outputs).length === 0) return [];
    if (!identity) {
      const inputValues = this.attributes
        .filter(({ role }) => role === "input")
        .map(({ property }) => inputs[property]);
      return hasUnknown(inputValues) ? [] : [`${this.typeName} ${JSON.stringify(inputValues)}`];
    }
    if (identity.fields.some((field) => hasUnknown(inputs[field]))) return [];
    const own = identity.ofInputs(inputs).filter(({ shared }) => !shared);
    return own.map(({ key }) => `${this.typeName} ${key}`);
  }

  /**
   * Creates an object.
   * @throws UnfinishedError if the object exists but could not be updated to match the configuration
   */
  async create(
    lifecycle: ResourceLifecycle,
    config: Row,
    planned: Row,
    inherits?: (id: string) => boolean,
  ): Promise<AppliedRow> {
    const instance = newInstance();
    const creator = { ...this.#creator(config), inherits, mark: instance };
    const created = await lifecycle.create(creator, this.#inputs(lifecycle, config));
    const { id, isAdopted } = created;
    const declarer = lifecycle.declarer(undefined);
    const data = { declarer, object: id, instance, ...(isAdopted && { isMarked: true }) };
    return { row: this.row(created, planned), data };
  }

  /**
   * Returns true if another resource has declared the object since this instance declared it, so that a deletion must
   * keep the object. The other resource belongs to a different project or workspace, or is an instance that has adopted
   * the object.
   * @param data the private data of this instance. An instance that an earlier version created has no id
   * @param owner the resource that was the last to declare the object
   */
  isOthers(
    { declarer, importedFrom, instance }: PrivateData,
    owner: Declaration,
    isForeign: boolean,
  ): boolean {
    const text = declaredByText(owner);
    if (text !== undefined && [declarer, importedFrom].includes(text)) return false;
    const mark = markIn(owner.resource, this.typeName);
    return isForeign || (mark !== undefined && instance !== undefined && mark !== instance);
  }

  /**
   * Returns the private data of an imported instance. If the declaration of the object contains the id of an instance,
   * the imported instance uses this id, so that a later deletion deletes the object. Otherwise, it gets a new id.
   * @param owner the declaration of the object
   */
  importedData(object: string, owner: Declaration | undefined): PrivateData {
    const mark = owner && markIn(owner.resource, this.typeName);
    return {
      object,
      instance: mark ?? newInstance(),
      importedFrom: owner && declaredByText(owner),
      ...(mark !== undefined && { isMarked: true }),
    };
  }

  /**
   * Updates an object and returns its row for the state. For an object with {@link ResourceDefinition.rotation}, the
   * plan may require a replacement. In this case, the update creates the successor of the object and deletes the
   * object. `left` is the error of a later step that failed after the successor was created.
   */
  async update(
    lifecycle: ResourceLifecycle,
    config: Row,
    prior: Row,
    planned: Row,
    before: PrivateData,
  ): Promise<AppliedRow & { readonly left?: unknown }> {
    const inputs = this.#inputs(lifecycle, config);
    const id = idIn(prior);
    const state = this.valuesIn(prior);
    const { rotation } = this.definition;
    if (!rotation || planned.id !== UNKNOWN) {
      const news = this.#withoutSameSecrets(config, prior, inputs);
      const { declarer, isMarked, instance = newInstance() } = before;
      const { changes, claims } = lifecycle.diff(undefined, id, state, news, { declarer });
      const mark = isMarked ? instance : undefined;
      const isSent = claims || changes.length > 0;
      const after = isSent ? await lifecycle.update(undefined, id, state, inputs, { declarer, mark }) : state;
      const declared = isSent && { declarer: lifecycle.declarer(undefined), importedFrom: undefined };
      const data = { ...before, instance, ...declared };
      return { row: this.row({ id, state: after }, planned), data };
    }
    const dataOf = ({ id: object }: Existing<Values>): PrivateData => ({
      declarer: lifecycle.declarer(undefined),
      object,
      instance: newInstance(),
    });
    const both = (created: Existing<Values>, left: unknown) => {
      const carriesOn = { id: created.id, state: rotation.withReplaced({ ...created.state }, state) };
      return { row: this.row(carriesOn, planned), data: dataOf(created), left };
    };
    try {
      const created = await lifecycle.create({ ...this.#creator(config), replaced: { id, state } }, inputs);
      const isOthers = (owner: Declaration, isForeign: boolean) => this.isOthers(before, owner, isForeign);
      const left = await lifecycle
        .delete(undefined, id, state, { isOthers })
        .catch((error: unknown) => ({ error }));
      return left ? both(created, left.error) : { row: this.row(created, planned), data: dataOf(created) };
    } catch (error) {
      if (error instanceof UnfinishedError) return both(error, error);
      throw error;
    }
  }

  /**
   * Converts an object to a row of the state.
   * @param like the planned row, or the row in the state. Values that are equal in this row keep its notation
   */
  row({ id, state }: Existing<Values>, like: Row): Row {
    return this.#each((attribute) => {
      const { name, property, type } = attribute;
      const before = like[name] ?? null;
      switch (attribute.role) {
        case "id":
          return id;
        case "secret":
        case "secretInput":
          return null;
        case "instruction":
          return before ?? NO_INSTRUCTION;
        case "secretVersion":
        case "secretInputVersion":
          return before;
        case "output":
          return toTerraform(type, state[property]);
        case "input": {
          const isKnown = before !== null && !hasUnknown(before);
          const isSame = isKnown && sameValue(attribute.field, fromTerraform(type, before), state[property]);
          return isSame ? before : toTerraform(type, state[property]);
        }
      }
    });
  }

  /**
   * Converts a state that a different version of the provider wrote to the form of this version. Converts attributes,
   * nested properties and defaults.
   */
  upgraded(state: Row): Row {
    const current = currentState(this.definition, this.#valuesOf(state, "input", "output"));
    return this.#each((attribute) => {
      const { role, name, property, type } = attribute;
      if (role === "instruction") return state[name] ?? NO_INSTRUCTION;
      const value = toTerraform(type, current[property] ?? fromTerraform(type, state[name]));
      return role === "input" ? filled(type, value, attribute.field.default) : value;
    });
  }

  /** Returns a row that contains only the id. An import returns such a row, and a read then adds the other values. */
  rowOfId(id: string): Row {
    return this.#each(({ role }) => (role === "id" ? id : null));
  }

  /** Returns the secrets in a configuration, longest first. */
  secretsIn(config: Row): string[] {
    return this.attributes
      .filter(({ role }) => isSecret(role))
      .map(({ name }) => config[name])
      .filter((value): value is string => typeof value === "string" && value !== "" && value !== UNKNOWN)
      .sort((a, b) => b.length - a.length);
  }

  /**
   * Returns the inputs of a configuration without unknown values.
   * @throws ResourceError if the inputs are invalid
   */
  #inputs(lifecycle: ResourceLifecycle, config: Row): Record<string, unknown> {
    const { inputs, failures } = lifecycle.check(undefined, {}, this.#declared(config));
    const [failure] = this.#failures(config, failures);
    if (failure) throw failure;
    return inputs;
  }

  #creator(config: Row) {
    const chosen = this.attributes
      .filter(({ role, name }) => role === "secret" && config[name] !== null)
      .map(({ name, property }) => [property, config[name]]);
    return { resource: undefined, state: undefined, chosen: Object.fromEntries(chosen) };
  }

  #plannedCreate(config: Row, inputs: Values): Row {
    return this.#each((attribute) => {
      const { name, property, type } = attribute;
      switch (attribute.role) {
        case "id":
        case "output":
          return UNKNOWN;
        case "secret":
        case "secretInput":
          return null;
        case "instruction":
          return config[name] ?? NO_INSTRUCTION;
        case "secretVersion":
        case "secretInputVersion":
          return config[name];
        case "input":
          return config[name] === null
            ? (toTerraform(type, inputs[property]) ?? UNKNOWN)
            : filled(type, config[name], attribute.field.default);
      }
    });
  }

  #plannedUpdate(config: Row, prior: Row, planned: Values, changed: ReadonlySet<string>): Row {
    return this.#each((attribute) => {
      const { name, property, type } = attribute;
      if (attribute.role === "output") {
        return planned[property] === UNKNOWN ? UNKNOWN : prior[name];
      }
      if (attribute.role === "secretInputVersion") return config[name];
      if (attribute.role !== "input" || !changed.has(property)) return prior[name];
      return config[name] === null
        ? toTerraform(type, planned[property])
        : filled(type, config[name], attribute.field.default);
    });
  }

  #each(of: (attribute: Attribute) => unknown): Row {
    return Object.fromEntries(this.attributes.map((attribute) => [attribute.name, of(attribute) ?? null]));
  }

  /** Returns the version attributes whose values differ between the state and the configuration. */
  #newVersions(config: Row, prior: Row, wanted: "secretVersion" | "secretInputVersion"): Attribute[] {
    return this.attributes.filter(
      ({ role, name }) => role === wanted && (config[name] ?? null) !== (prior[name] ?? null),
    );
  }

  /**
   * Returns the inputs, but omits the secrets whose version number did not change. Secrets cannot be compared, because
   * the state does not contain them.
   */
  #withoutSameSecrets(config: Row, prior: Row, inputs: Record<string, unknown>): Record<string, unknown> {
    const isNew = this.#newVersions(config, prior, "secretInputVersion").map(({ name }) => name);
    const same = this.attributes.filter(
      ({ role, name }) => role === "secretInput" && !isNew.includes(`${name}_version`),
    );
    const names = same.map(({ property }) => property);
    return Object.fromEntries(Object.entries(inputs).filter(([name]) => !names.includes(name)));
  }
}

/** Returns true if attributes with this role are write-only. */
export const isSecret = (role: Attribute["role"]): boolean => role === "secret" || role === "secretInput";

/** Returns the id in a row of the state. */
export const idIn = (row: Row): string => String(row.id);

/** Returns a configured value with defaults for its omitted nested properties. */
function filled(type: Type, value: unknown, fallback: unknown): unknown {
  if (type.kind !== "object" || value === UNKNOWN || value === null || fallback === undefined) return value;
  const defaults = toTerraform(type, fallback) as Row;
  const entries = Object.entries(value as Row).map(([name, member]) => [
    name,
    member ?? defaults[name] ?? null,
  ]);
  return Object.fromEntries(entries);
}

/** Returns the errors that only the Terraform provider reports for an attribute. An unknown value has no errors. */
function ownFaults(attribute: Attribute, config: Row): ResourceFault[] {
  const { role, name, property } = attribute;
  const value = config[name] ?? UNKNOWN;
  const invalid = { code: "invalid_input", field: [property] } as const;
  // The service would replace an empty string with its own value, and Terraform would report the replacement as a
  // provider bug.
  if (role === "input" && value === "" && !attribute.field.required && canonical(attribute.field, "") !== "")
    return [{ ...invalid, detail: said`must not be empty; omit it, or set null` }];
  if (role !== "secret" || value === UNKNOWN) return [];
  const { error } = attribute.field.choice?.safeParse(value) ?? {};
  return (error?.issues ?? []).map(({ message }) => ({ ...invalid, detail: [message], remedy: CHOOSE }));
}

/**
 * The remedy for an invalid secret. Terraform's function `uuid()` is unsuitable: its result is not a version 4 UUID, is
 * known only at apply, and is not shown.
 */
const CHOOSE = said`create one with the command uuidgen, and set it from an ephemeral variable or a secret store (Terraform's uuid() does not create version 4 UUIDs)`;

/** Returns an error for each secret that a new object needs but the configuration omits. */
const missingSecrets = (attributes: readonly Attribute[], config: Row): Diagnostic[] =>
  attributes
    .filter(({ role, name }) => role === "secret" && (config[name] ?? null) === null)
    .map(({ name, description }) =>
      errorAt(
        [name],
        `Invalid ${name}`,
        withCode(`${name} is required to create the resource: ${description}`, { code: "missing_input" }),
      ),
    );
