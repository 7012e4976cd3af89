import { withCode } from "@gatehouse-access/sdk/errors";
import { UNKNOWN } from "../../engineMarks.ts";
import { plannedUpdate } from "../../lifecycle/diff.ts";
import type { ResourceLifecycle } from "../../lifecycle/lifecycle.ts";
import { ResourceError, type ResourceFault, said } from "../../resourceError.ts";
import { type Existing, type ResourceDefinition, UnfinishedError } from "../../resources/definition.ts";
import { canonical, hasUnknown, sameValue } from "../../resources/values.ts";
import { type Attribute, attributesOf } from "../../terraform/attributes.ts";
import {
  fromTerraform,
  type Row,
  type Type,
  toTerraform,
  typeNameOf,
  valuesOf,
} from "../../terraform/types.ts";
import { type Diagnostic, errorAt, failureDiagnostic } from "./diagnostics.ts";

type Values = Readonly<Record<string, unknown>>;

/**
 * What a state holds for an instruction that nobody gave. Terraform lets a provider plan the state's value in place of a
 * configuration's only where that is not null; so no instruction is a change of an object.
 */
const NO_INSTRUCTION = "false";

/** What a change will lead to. */
export interface PlannedChange {
  readonly planned: Row;
  /** Names of the attributes that make it a replacement. */
  readonly replaces: readonly string[];
  readonly errors: readonly Diagnostic[];
}

/** A kind of resource as Terraform has it: its rows, and what its lifecycle does with them. */
export class TerraformResource {
  readonly definition: ResourceDefinition;
  readonly typeName: string;
  readonly attributes: readonly Attribute[];

  constructor(definition: ResourceDefinition) {
    this.definition = definition;
    this.typeName = typeNameOf(definition);
    this.attributes = attributesOf(definition);
  }

  /** What is wrong with a configuration, as far as it is known. No request is made. */
  validate(lifecycle: ResourceLifecycle, config: Row): Diagnostic[] {
    const { failures } = lifecycle.check(undefined, {}, this.#declared(config));
    return this.#diagnostics(this.#failures(config, failures));
  }

  /** @param ofModel what the declarative model finds wrong */
  #failures(config: Row, ofModel: readonly ResourceError[]): ResourceError[] {
    const faults = this.attributes.flatMap((attribute) => ownFaults(attribute, config));
    return [...faults.map((fault) => new ResourceError(this.definition.name, fault)), ...ofModel];
  }

  #diagnostics(failures: readonly ResourceError[]): Diagnostic[] {
    return failures.map((failure) => failureDiagnostic(this.definition, failure));
  }

  /**
   * What a configuration will lead to. No request is made.
   * @param name of the resource, for errors about two with one object; the same in every call about one resource
   * @param prior the state; undefined for what is to be made
   */
  plan(lifecycle: ResourceLifecycle, name: string, config: Row, prior: Row | undefined): PlannedChange {
    const olds = prior ? this.valuesIn(prior) : {};
    const { inputs, failures } = lifecycle.check(name, olds, this.#declared(config));
    const errors = this.#diagnostics(this.#failures(config, failures));
    if (errors.length > 0) return { planned: config, replaces: [], errors };
    const created = () => ({
      planned: this.#plannedCreate(config, inputs),
      replaces: [],
      errors: missingSecrets(this.attributes, config),
    });
    if (!prior) return created();
    const isAsked = this.#hasNewVersion(config, prior);
    const { changes, replaces } = lifecycle.diff(name, idIn(prior), olds, inputs, isAsked);
    if (changes.length === 0 && !isAsked) {
      return { planned: prior, replaces: [], errors: [] };
    }
    if (this.definition.withReplaced && replaces.length > 0) return created();
    const changed = new Set(changes.map(({ field }) => field));
    return {
      planned: this.#plannedUpdate(config, prior, plannedUpdate(this.definition, olds, inputs), changed),
      replaces: this.attributes.filter(({ property }) => replaces.includes(property)).map(({ name }) => name),
      errors: [],
    };
  }

  /** The resource's values in the declarative model, of a row of the state, which has them as they were written. */
  valuesIn(row: Row): Record<string, unknown> {
    const values = this.#valuesOf(row, "input", "output");
    const inCanonicalForm = this.attributes.flatMap((attribute) => {
      const { property } = attribute;
      if (attribute.role !== "input" || values[property] === undefined) return [];
      return [[property, canonical(attribute.field, values[property])] as const];
    });
    return { ...values, ...Object.fromEntries(inCanonicalForm) };
  }

  /** What a configuration declares, as checks take it. */
  #declared(config: Row): Record<string, unknown> {
    return this.#valuesOf(config, "input", "instruction");
  }

  #valuesOf(row: Row, ...roles: readonly Attribute["role"][]): Record<string, unknown> {
    return valuesOf(
      this.attributes.filter(({ role }) => roles.includes(role)),
      row,
    );
  }

  /**
   * By what the objects that resources of this kind declare are told apart, of a row that is planned or in the state;
   * nothing where that is not known yet, or where a kind has no object of its own.
   */
  objectKeys(row: Row): readonly string[] {
    const { identity, outputs } = this.definition;
    const inputs = this.valuesIn(row);
    if (Object.keys(outputs).length === 0) return [];
    if (!identity) {
      const says = this.attributes
        .filter(({ role }) => role === "input")
        .map(({ property }) => inputs[property]);
      return hasUnknown(says) ? [] : [`${this.typeName} ${JSON.stringify(says)}`];
    }
    if (identity.fields.some((field) => hasUnknown(inputs[field]))) return [];
    const own = identity.ofInputs(inputs).filter(({ shared }) => !shared);
    return own.map(({ key }) => `${this.typeName} ${key}`);
  }

  /** Makes an object. @throws UnfinishedError when the object is there, but not as declared */
  async create(lifecycle: ResourceLifecycle, config: Row, planned: Row): Promise<Row> {
    const made = await lifecycle.create(this.#creator(config), this.#inputs(lifecycle, config));
    return this.row(made, planned);
  }

  /** Changes an object, or makes the one that carries on from it. Gives the state; `left` says what is still to do. */
  async update(
    lifecycle: ResourceLifecycle,
    config: Row,
    prior: Row,
    planned: Row,
  ): Promise<{ readonly row: Row; readonly left?: unknown }> {
    const inputs = this.#inputs(lifecycle, config);
    const id = idIn(prior);
    const state = this.valuesIn(prior);
    const { withReplaced } = this.definition;
    if (!withReplaced || planned.id !== UNKNOWN) {
      const isChanged = lifecycle.diff(undefined, id, state, inputs).changes.length > 0;
      const after = isChanged ? await lifecycle.update(undefined, id, state, inputs) : state;
      return { row: this.row({ id, state: after }, planned) };
    }
    const both = (made: Existing<Values>, left: unknown) => {
      const carriesOn = { id: made.id, state: withReplaced({ ...made.state }, state) };
      return { row: this.row(carriesOn, planned), left };
    };
    try {
      const made = await lifecycle.create({ ...this.#creator(config), replaced: { id, state } }, inputs);
      const left = await lifecycle.delete(undefined, id, state).catch((error: unknown) => ({ error }));
      return left ? both(made, left.error) : { row: this.row(made, planned) };
    } catch (error) {
      if (error instanceof UnfinishedError) return both(error, error);
      throw error;
    }
  }

  /**
   * An object as a row of the state.
   * @param like what was planned, or is in the state: where a value means the same, its text is kept
   */
  row({ id, state }: Existing<Values>, like: Row): Row {
    return this.#each((attribute) => {
      const { name, property, type } = attribute;
      const before = like[name] ?? null;
      switch (attribute.role) {
        case "id":
          return id;
        case "secret":
          return null;
        case "instruction":
          return before ?? NO_INSTRUCTION;
        case "secretVersion":
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

  /** A state that another version wrote, with the attributes and members of this version and their defaults. */
  upgraded(state: Row): Row {
    return this.#each((attribute) => {
      const { role, name, type } = attribute;
      if (role === "instruction") return state[name] ?? NO_INSTRUCTION;
      const value = toTerraform(type, fromTerraform(type, state[name]));
      return role === "input" ? filled(type, value, attribute.field.default) : value;
    });
  }

  /** A row that names an object, and says nothing else of it: that of an import before the object is read. */
  rowOfId(id: string): Row {
    return this.#each(({ role }) => (role === "id" ? id : null));
  }

  /** The texts in a configuration that nothing may show, the longest first. */
  secretsIn(config: Row): string[] {
    return this.attributes
      .filter(({ role }) => role === "secret")
      .map(({ name }) => config[name])
      .filter((value): value is string => typeof value === "string" && value !== "" && value !== UNKNOWN)
      .sort((a, b) => b.length - a.length);
  }

  /** The inputs of a configuration that is known. @throws ResourceError where they are wrong after all */
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
          return null;
        case "instruction":
          return config[name] ?? NO_INSTRUCTION;
        case "secretVersion":
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
      if (attribute.role !== "input" || !changed.has(property)) return prior[name];
      return config[name] === null
        ? toTerraform(type, planned[property])
        : filled(type, config[name], attribute.field.default);
    });
  }

  #each(of: (attribute: Attribute) => unknown): Row {
    return Object.fromEntries(this.attributes.map((attribute) => [attribute.name, of(attribute) ?? null]));
  }

  #hasNewVersion(config: Row, prior: Row): boolean {
    return this.attributes.some(
      ({ role, name }) => role === "secretVersion" && (config[name] ?? null) !== (prior[name] ?? null),
    );
  }
}

/** The id in a row of the state. */
export const idIn = (row: Row): string => String(row.id);

/** A value of a configuration with the defaults of the members that it leaves out. */
function filled(type: Type, value: unknown, fallback: unknown): unknown {
  if (type.kind !== "object" || value === UNKNOWN || value === null || fallback === undefined) return value;
  const defaults = toTerraform(type, fallback) as Row;
  const entries = Object.entries(value as Row).map(([name, member]) => [
    name,
    member ?? defaults[name] ?? null,
  ]);
  return Object.fromEntries(entries);
}

/** What is wrong with an attribute beside what the declarative model finds, as far as it is known. */
function ownFaults(attribute: Attribute, config: Row): ResourceFault[] {
  const { role, name, property } = attribute;
  const value = config[name] ?? UNKNOWN;
  const invalid = { code: "invalid_input", field: [property] } as const;
  // An empty text would come back as what the service decides, which Terraform takes for a fault of the provider.
  if (role === "input" && value === "" && !attribute.field.required && canonical(attribute.field, "") !== "")
    return [{ ...invalid, detail: said`must not be empty; leave it out, or give null` }];
  if (role !== "secret" || value === UNKNOWN) return [];
  const { error } = attribute.field.choice?.safeParse(value) ?? {};
  return (error?.issues ?? []).map(({ message }) => ({ ...invalid, detail: [message], remedy: CHOOSE }));
}

/** Terraform's own function is known at the apply alone, makes no UUID of a version, and shows nobody what it made. */
const CHOOSE = said`make one by the command uuidgen, and give it by an ephemeral variable or from a secret store (uuid() of Terraform makes no UUID of a version)`;

/** The error where a new object needs a secret, and the configuration has none. */
const missingSecrets = (attributes: readonly Attribute[], config: Row): Diagnostic[] =>
  attributes
    .filter(({ role, name }) => role === "secret" && (config[name] ?? null) === null)
    .map(({ name, description }) =>
      errorAt(
        [name],
        `Invalid ${name}`,
        withCode(`${name}: is required here: ${description}`, { code: "missing_input" }),
      ),
    );
