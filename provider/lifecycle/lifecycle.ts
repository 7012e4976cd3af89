import {
  AuthenticationError,
  ConfigurationError,
  type Declaration,
  PermissionError,
} from "@gatehouse-access/sdk";
import { issueText } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { adoptionText } from "../engineMarks.ts";
import { ResourceError, type ResourceFault, said } from "../resourceError.ts";
import {
  type Existing,
  type Failure,
  type InputField,
  type ResourceDefinition,
  UnfinishedError,
} from "../resources/definition.ts";
import { canonical, canonicalInputs, hasUnknown, sameValue } from "../resources/values.ts";
import type { Connection } from "../service/connection.ts";
import { isMissingObject, isNoToken, isSilent } from "../service/listings.ts";
import { DuplicateDeclarationError } from "./claims.ts";
import { createOrAdopt } from "./createOrAdopt.ts";
import { diff, type InputChange, lastingOutputs, settled } from "./diff.ts";
import type { Creator, RunRecord } from "./runRecord.ts";

type Values = Readonly<Record<string, unknown>>;

/** What whoever runs the program should know. */
export interface Notice {
  /** The resource that it is about: the name of its definition, and its own in the program. */
  readonly about?: { readonly type: string; readonly name: string };
  readonly text: string;
}

export const noticeText = ({ about, text }: Notice): string =>
  about ? `${about.type} "${about.name}": ${text}` : text;

/** What the resources of one process share. */
export interface Runtime {
  readonly run: RunRecord;
  /** The namespace of resources that name none, as far as settings tell; the mark of the unknown before they do. */
  defaultTenant(): string | undefined;
  /**
   * The program's declaration of an object, which writes of the object carry.
   * @param resource the resource's name for the engine, where the engine gives one
   */
  declaration(definition: ResourceDefinition, resource: string | undefined): Declaration | undefined;
  /** True when `gatehouse` was told to replace the resource of this URN. */
  isReplacementAsked(urn: string): boolean;
  /**
   * The connection of the run, opened when the first resource needs the service.
   * @throws ConfigurationError naming the variable that is missing or wrong, with what is allowed
   */
  connection(): Connection;
  /** Tells whoever runs the program something about a resource. */
  tell(notice: Notice, resource: string | undefined): void;
}

/** What a diff found. */
export interface Compared {
  readonly changes: readonly InputChange[];
  /** The inputs that make it a replacement; `id` where somebody asked for one. */
  readonly replaces: readonly string[];
}

interface ReadObject extends Existing<Values> {
  /**
   * The inputs that declare the object as it is. Undefined where those in the state still do, or where nobody knows
   * which of them the program gave.
   */
  readonly inputs?: Values;
}

/** True for inputs that an object does not tell: what a run is told by them, and what a program may leave open. */
const isOpen = ({ transient, required, default: fallback }: InputField): boolean =>
  transient || (!required && fallback === undefined);

/** What a program's inputs say beside what the object shows: those that are open, null for a value that it shows. */
export const openInputs = ({ inputs }: ResourceDefinition, declared: Values): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(declared).flatMap(([name, value]) => {
      const field = inputs[name];
      return field && isOpen(field) ? [[name, field.transient ? value : null]] : [];
    }),
  );

/**
 * What engines ask of one declarative resource, whichever way they ask. Values have nothing of an engine in them but
 * the mark of what is unknown; resources are named by their URNs.
 */
export class ResourceLifecycle {
  readonly definition: ResourceDefinition;
  readonly #runtime: Runtime;

  constructor(definition: ResourceDefinition, runtime: Runtime) {
    this.definition = definition;
    this.#runtime = runtime;
  }

  /**
   * Checks inputs without any request.
   * @param olds the inputs in the state; empty where there are none
   */
  check(
    resource: string | undefined,
    olds: Values,
    news: Values,
  ): { inputs: Record<string, unknown>; failures: readonly ResourceError[] } {
    const { definition } = this;
    const { inputs, failures } = check(definition, this.#withTenant(news, olds));
    if (failures.length > 0) return { inputs, failures };
    return { inputs, failures: this.#twins(resource, inputs, olds) };
  }

  /**
   * Compares the state with inputs that were checked, without any request.
   * @param isAsked true where the program asks for a new object by what no definition knows
   */
  diff(resource: string | undefined, id: string, state: Values, inputs: Values, isAsked = false): Compared {
    const { run, isReplacementAsked } = this.#runtime;
    const changes = diff(this.definition, state, inputs);
    const replaces = changes.filter((change) => change.replaces).map((change) => change.field);
    if (isAsked || (resource !== undefined && isReplacementAsked(resource))) replaces.push("id");
    run.compared(this.definition, resource, { id, state }, replaces.length > 0);
    return { changes, replaces };
  }

  /** @throws UnfinishedError when the object is there, but not as declared */
  async create(creator: Creator, inputs: Record<string, unknown>): Promise<Existing<Values>> {
    const { definition } = this;
    const { run, tell } = this.#runtime;
    const { resource, secretInputs } = creator;
    const origin = run.origin(definition, creator, inputs);
    const about = { type: definition.name, name: origin.name };
    const adopted = (id: string) => tell({ about, text: adoptionText(id) }, resource);
    try {
      const made = await this.#writing(resource, (connection) =>
        createOrAdopt({ definition, connection, inputs, origin, secretInputs, adopted }),
      );
      run.created(definition, resource, made);
      const warning = definition.warning?.(made.state);
      if (warning !== undefined) tell({ about, text: warning }, resource);
      return made;
    } catch (error) {
      if (error instanceof UnfinishedError) origin.claim(error.id);
      throw error;
    }
  }

  /** Gives the state after the update, which is as {@link plannedUpdate} says. */
  async update(resource: string | undefined, id: string, state: Values, inputs: Values): Promise<Values> {
    const { definition } = this;
    try {
      const wanted = settled(definition, state, inputs);
      const after = await this.#writing(resource, (service) => definition.update(service, id, state, wanted));
      return { ...after, ...lastingOutputs(definition, state) };
    } catch (error) {
      throw isMissingObject(error) ? gone(definition, id, error) : error;
    }
  }

  /**
   * The object as it is now; undefined when it is gone.
   * @param given the state; for an import, what the program says at most
   * @param open the program's inputs, or its {@link openInputs}
   */
  async read(
    resource: string | undefined,
    id: string,
    given: Values,
    open?: Values,
  ): Promise<ReadObject | undefined> {
    const { definition } = this;
    const isImport = !isState(definition, given);
    const state = isImport ? {} : given;
    const found = await this.#onService(resource, (service) =>
      goneIsUndefined(service, state.tenant, () => definition.read(service, id, state)),
    );
    if (!found) return undefined;
    const kept = keepText(definition, state, found);
    if (isImport) return { ...kept, inputs: canonicalInputs(definition.inputs, kept.state) };
    if (!open) return kept;
    // Engines put the inputs of the state in the place of those that a program ignores: they must be what is there.
    const { inputs } = definition;
    const declared = Object.entries(inputs).flatMap(([name, field]) =>
      isOpen(field) && !(name in open) ? [] : [[name, open[name] ?? canonical(field, state[name])] as const],
    );
    const changes = diff(definition, kept.state, Object.fromEntries(declared));
    if (changes.length === 0) return kept;
    const drifted = new Set(changes.map(({ field }) => field));
    const now = canonicalInputs(inputs, kept.state);
    const refreshed = declared.map(([name, value]) => [name, drifted.has(name) ? now[name] : value] as const);
    return { ...kept, inputs: Object.fromEntries(refreshed.filter(([, value]) => value !== undefined)) };
  }

  async delete(resource: string | undefined, id: string, state: Values): Promise<void> {
    const { definition } = this;
    const { run } = this.#runtime;
    if (run.isHeld(definition, id)) return;
    await this.#writing(resource, (service) => {
      const step = () => definition.delete(service, id, state, (key) => run.isClaimed(key));
      const isThere = async () => {
        await service.forget();
        return (await definition.read(service, id, state))?.id === id;
      };
      return goneIsUndefined(service, state.tenant, step, isThere);
    });
  }

  // An input that is left out is never compared. Filled in, the namespace is.
  #withTenant(given: Values, { tenant: before }: Values): Values {
    if (!this.definition.inputs.tenant || given.tenant) return given;
    const tenant = this.#runtime.defaultTenant();
    // An object that is there is not replaced because nobody knows yet where it will be.
    return before !== undefined && hasUnknown(tenant) ? given : { ...given, tenant };
  }

  #twins(resource: string | undefined, inputs: Values, olds: Values): readonly ResourceError[] {
    const { definition } = this;
    try {
      const before = Object.keys(olds).length === 0 ? undefined : olds;
      this.#runtime.run.checked(definition, resource, inputs, before);
      return [];
    } catch (error) {
      if (!(error instanceof DuplicateDeclarationError)) throw error;
      return [error];
    }
  }

  /** Does work that may write, and then says of which resource it is. */
  #writing<T>(resource: string | undefined, step: (service: Connection) => Promise<T>): Promise<T> {
    const declaration = this.#runtime.declaration(this.definition, resource);
    if (!declaration) return this.#onService(resource, step);
    return this.#onService(resource, (service) => step(service.declaring(declaration)));
  }

  async #onService<T>(resource: string | undefined, step: (service: Connection) => Promise<T>): Promise<T> {
    const service = this.#runtime.connection();
    return service.telling(
      (text) => this.#runtime.tell({ text }, resource),
      () => step(service),
    );
  }
}

/** True for the values of a state; for an import, an engine gives the program's inputs at most. */
function isState({ outputs }: ResourceDefinition, given: Values): boolean {
  const decided = Object.keys(outputs);
  return decided.length === 0
    ? Object.keys(given).length > 0
    : decided.some((name) => given[name] !== undefined);
}

/**
 * Reads or deletes an object; undefined when somebody else removed it, or the namespace that it was in.
 * @param isThere called after a 404 without a message, which may come from a proxy: true when the object is there
 * @throws Error when the credential's user is no member of the namespace, so that nothing is known of the object
 */
async function goneIsUndefined<T>(
  connection: Connection,
  tenant: unknown,
  step: () => Promise<T>,
  isThere: () => Promise<boolean> = async () => true,
): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    if (isMissingObject(error)) {
      if (isSilent(error) && (await isThere())) throw error;
      return undefined;
    }
    const isRefused = isNoToken(error) || error instanceof AuthenticationError;
    if (!isRefused || typeof tenant !== "string") throw error;
    // When the namespace was deleted, the object is gone too; when the user's membership was ended, it is not.
    if (await isGone(connection, tenant)) return undefined;
    throw isNoToken(error) ? noMember(tenant, error) : error;
  }
}

function noMember(tenant: string, cause: unknown): Error {
  const detail = `its user is no member of the namespace ${tenant}, so that nothing is known of what is in it`;
  const remedy = "make it one (again), or use another credential";
  return new ConfigurationError(detail, { field: ["credential"], remedy, cause });
}

function gone({ name }: ResourceDefinition, id: string, cause: unknown): ResourceError {
  const fault: ResourceFault = {
    code: "object_deleted",
    detail: said`${id}, or what it belongs to, is gone: somebody removed it since the state was written`,
    remedy: said`${{ phrase: "refresh" }}, so that it is made again`,
  };
  return new ResourceError(name, fault, { cause });
}

async function isGone({ client, namespaces }: Connection, tenant: string): Promise<boolean> {
  try {
    await client.getNamespace({ params: { tenant } });
    return false;
  } catch (error) {
    if (isMissingObject(error)) {
      if (!isSilent(error)) return true;
      namespaces.forget();
      return (await namespaces.all()).every(({ tenantId }) => tenantId !== tenant);
    }
    // With 403 it is there, and others' own. Without a token nothing is known, so nothing counts as gone.
    if (error instanceof PermissionError || isNoToken(error)) return false;
    throw error;
  }
}

/**
 * The object as found, but with the state's text for inputs that did not change, and the state's volatile outputs where
 * no input changed: such changes are no drift. States of older versions lack members that have their default.
 */
function keepText(
  { inputs, outputs }: ResourceDefinition,
  before: Values,
  found: Existing<Values>,
): Existing<Values> {
  const same = Object.keys(inputs).filter((name) =>
    sameValue(inputs[name] as InputField, before[name], found.state[name]),
  );
  const isSame = same.length === Object.keys(inputs).length;
  const volatile = isSame ? Object.keys(outputs).filter((name) => outputs[name]?.volatile) : [];
  const kept = [...same, ...volatile].filter((name) => before[name] !== undefined);
  return {
    id: found.id,
    state: { ...found.state, ...Object.fromEntries(kept.map((name) => [name, before[name]])) },
  };
}

/** Canonical inputs; or inputs as they were given, and what is wrong with them. */
export interface Checked {
  readonly inputs: Record<string, unknown>;
  readonly failures: readonly ResourceError[];
}

/**
 * Checks a program's inputs without any request, so that a preview refuses what the service would refuse. Values that
 * are not known yet are checked once they are.
 */
export function check(definition: ResourceDefinition, given: Readonly<Record<string, unknown>>): Checked {
  const failures = [...unknownNames(definition, given)];
  for (const [name, field] of Object.entries(definition.inputs)) {
    failures.push(...checkField(name, field, given[name]));
  }
  // Only valid values have a canonical form. No engine takes undefined values.
  const inputs = failures.length > 0 ? defined(given) : canonicalInputs(definition.inputs, given);
  if (failures.length === 0 && !hasUnknown(inputs)) failures.push(...(definition.rules?.(inputs) ?? []));
  const { name } = definition;
  return {
    inputs,
    failures: failures.map((failure) => new ResourceError(name, failure)),
  };
}

const defined = (values: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

function unknownNames(definition: ResourceDefinition, given: Readonly<Record<string, unknown>>): Failure[] {
  const allowed = Object.keys(definition.inputs);
  return Object.keys(given)
    .filter((name) => !allowed.includes(name) && given[name] !== undefined)
    .map((name) => ({
      code: "unknown_input",
      field: [name],
      detail: said`is not an input`,
      remedy: said`inputs are ${allowed.join(", ")}`,
    }));
}

function checkField(name: string, field: InputField, value: unknown): Failure[] {
  const missing = value === undefined || value === null || (value === "" && !field.required);
  if (missing) {
    const detail = said`is required: ${field.description}`;
    return field.required ? [{ code: "missing_input", field: [name], detail }] : [];
  }
  if (hasUnknown(value)) return [];
  const result = field.schema.safeParse(value, { error: issueText });
  return result.success ? [] : result.error.issues.map((issue) => toFailure(name, issue));
}

function toFailure(name: string, { path, message }: z.core.$ZodIssue): Failure {
  const inside = path.map((step) => (typeof step === "symbol" ? String(step) : step));
  return { code: "invalid_input", field: [name, ...inside], detail: [message] };
}
