import {
  AuthenticationError,
  ConfigurationError,
  type Declaration,
  hasDifference,
  isUnreachable,
  PermissionError,
  RequestError,
  type SshAccessMode,
} from "@gatehouse-access/sdk";
import { declarationOf, declaredByText } from "@gatehouse-access/sdk/contract";
import { adoptionText, leftText } from "../engineMarks.ts";
import {
  claimedObject,
  currentState,
  type Existing,
  endedAt,
  type Failure,
  type ResourceDefinition,
} from "../model/definition.ts";
import type { InputField } from "../model/fields.ts";
import { UnfinishedError } from "../model/unfinishedError.ts";
import { hasEnded } from "../model/validity.ts";
import { canonical, canonicalInputs, hasUnknown, sameValue } from "../model/values.ts";
import {
  type Message,
  messageText,
  ResourceError,
  type ResourceFault,
  said,
  type Words,
} from "../resourceError.ts";
import { isMissingObject, isNoToken, isProvenMissing } from "../service/absence.ts";
import { declarationText, isSameStack } from "../service/auditTrail.ts";
import { hasCapability, lackFault, lackNotice } from "../service/capabilities.ts";
import type { Connection } from "../service/connection.ts";
import { urnName } from "../urn.ts";
import type { Values } from "../values.ts";
import { agoText } from "../words.ts";
import { check } from "./checkInputs.ts";
import { DuplicateDeclarationError } from "./claims.ts";
import { createOrAdopt } from "./createOrAdopt.ts";
import { diff, type InputChange, lastingOutputs, settled } from "./diff.ts";
import { changeConflict, objectId, tenantOf, updateUnchanged } from "./outOfBand.ts";
import { type Creator, markedResource, type RunRecord } from "./runRecord.ts";

/** A message to the user who runs the program. */
export interface Notice {
  /** The resource that the message refers to: its resource type and its name in the program. */
  readonly about?: { readonly type: string; readonly name: string };
  readonly text: string | Message;
}

/** Returns a notice as text. @param words the terms of the front end, by default Pulumi's */
export function noticeText({ about, text }: Notice, words?: Words): string {
  const written = typeof text === "string" ? text : messageText(text, words);
  return about ? `${about.type} "${about.name}": ${written}` : written;
}

/** The data and functions that the resources of one process share. */
export interface Runtime {
  readonly run: RunRecord;
  /**
   * Returns the id of the default namespace, which resources without `tenant` use. Returns undefined if no setting
   * defines it. Returns {@link UNKNOWN} while the setting is unknown.
   */
  defaultTenant(): string | undefined;
  /**
   * Returns the declaration of an object: the project, stack and resource that declare it. Writes of the object carry
   * the declaration.
   * @param resource the resource's name in the engine, if the engine passes one
   */
  declaration(definition: ResourceDefinition, resource: string | undefined): Declaration | undefined;
  /** Returns true if a replacement of the resource with this URN was requested from `gatehouse`. */
  isReplacementRequested(urn: string): boolean;
  /**
   * Returns the connection of the run. The connection opens when a resource first needs the service.
   * @throws ConfigurationError with the missing or wrong variable and its allowed values
   */
  connection(): Connection;
  /** Sends a message about a resource to the user who runs the program. */
  tell(notice: Notice, resource: string | undefined): void;
}

/** The result of comparing a resource's state with the program's inputs. */
export interface Compared {
  readonly changes: readonly InputChange[];
  /** Names of the inputs that require a replacement. Contains `id` if the user requested the replacement. */
  readonly replaces: readonly string[];
  /** True if a replacement must delete the old object first. */
  readonly deleteBeforeReplace: boolean;
  /**
   * True if the resource declares an object that another resource or stack declared before, according to the state. The
   * update then claims the object.
   */
  readonly claims: boolean;
}

/** The options of {@link ResourceLifecycle.diff}. */
export interface DiffOptions {
  /** True if the program requests a replacement with an attribute that is not an input of the resource type. */
  readonly isRequested?: boolean;
  /** The {@link ResourceLifecycle.declarer} that the state contains. Undefined if the state contains none. */
  readonly declarer?: unknown;
}

/** The options of {@link ResourceLifecycle.update} and {@link ResourceLifecycle.previewUpdate}. */
export interface UpdateOptions extends Pick<DiffOptions, "declarer"> {
  /** Names of inputs whose values must not appear in errors, if the engine provides them. */
  readonly secretInputs?: readonly string[];
  /** The mark of the declaration that the update stores. See {@link markedResource}. */
  readonly mark?: string | undefined;
}

/** The options of {@link ResourceLifecycle.delete}. */
export interface DeleteOptions extends Pick<DiffOptions, "declarer"> {
  /**
   * Returns true if the deletion must leave the object, because another resource has declared the object last.
   * @param isForeign true if the owner belongs to another project or stack
   * @default returns `isForeign`
   */
  readonly isOthers?: (owner: Declaration, isForeign: boolean) => boolean;
}

/** An object after a create. */
export interface CreatedObject extends Existing<Values> {
  /** True if the object existed before, and was adopted or inherited. */
  readonly isAdopted: boolean;
}

/** For each mode of a namespace, the objects that authorize logins, and all objects that act in the mode. */
const MODES: Readonly<Record<SshAccessMode, { readonly deciding: string; readonly acting: string }>> = {
  legacy: { deciding: "public keys", acting: "public keys and firewall rules" },
  identity: { deciding: "access policies", acting: "access policies and service accounts" },
  unknown: { deciding: "objects that this version does not know", acting: "these objects" },
};

interface ReadObject extends Existing<Values> {
  /**
   * The inputs that declare the object in its current state. Undefined if the inputs in the state already match the
   * object, or if the program's inputs are unknown.
   */
  readonly inputs?: Values;
}

/**
 * Returns true if the object on the service does not reveal whether a program set this input. There are two cases.
 * Instructions to the run, such as `adopt`, are not part of the object. For an omitted optional input without a
 * default, the service chooses a value, which looks like a value from the program.
 */
const isOpen = ({ transient, required, default: fallback }: InputField): boolean =>
  transient || (!required && fallback === undefined);

/**
 * Returns the inputs that the program sets, limited to inputs whose use the object on the service does not reveal.
 * Instructions such as `adopt` keep their values. Optional inputs get the value null, because their values can be read
 * from the object.
 */
export const openInputs = ({ inputs }: ResourceDefinition, declared: Values): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(declared).flatMap(([name, value]) => {
      const field = inputs[name];
      return field && isOpen(field) ? [[name, field.transient ? value : null]] : [];
    }),
  );

/**
 * The operations that engines run on resources of one type, independent of the front end. Values contain no
 * engine-specific data except the mark of unknown values. Resources are identified by their URNs.
 */
export class ResourceLifecycle {
  readonly definition: ResourceDefinition;
  readonly #runtime: Runtime;
  /** True after a preview could not reach the service. */
  #isUnchecked = false;

  constructor(definition: ResourceDefinition, runtime: Runtime) {
    this.definition = definition;
    this.#runtime = runtime;
  }

  /**
   * Checks inputs without sending a request.
   * @param olds the inputs in the state; empty if the resource is not in the state
   */
  check(
    resource: string | undefined,
    olds: Values,
    news: Values,
  ): { inputs: Record<string, unknown>; failures: readonly ResourceError[] } {
    const { definition } = this;
    const { inputs, failures } = check(definition, this.#withTenant(news, olds));
    if (failures.length > 0) return { inputs, failures };
    return { inputs, failures: this.#duplicates(resource, inputs, olds) };
  }

  /**
   * Returns the errors for checked inputs that the server does not support. Sends requests only if the inputs need a
   * capability that some servers lack. A preview may run without the service: if a request fails, the result is empty,
   * and the create or update checks the inputs again.
   * @param olds the inputs in the state; empty if the resource is not in the state
   */
  async unsupported(
    resource: string | undefined,
    olds: Values,
    inputs: Values,
  ): Promise<readonly ResourceError[]> {
    const failures = this.#pastEnd(olds, inputs);
    if (failures.length > 0 || this.#isUnchecked) return failures;
    return this.#lacking(resource, olds, inputs).catch((error: unknown) => {
      if (!(error instanceof RequestError || error instanceof ConfigurationError)) throw error;
      // Further checks would wait for the service again.
      this.#isUnchecked ||= isUnreachable(error);
      return [];
    });
  }

  /** Checks inputs like {@link check}, and then like {@link unsupported}. */
  async checkOnServer(
    resource: string | undefined,
    olds: Values,
    news: Values,
  ): Promise<{ inputs: Record<string, unknown>; failures: readonly ResourceError[] }> {
    const { inputs, failures } = this.check(resource, olds, news);
    if (failures.length > 0) return { inputs, failures };
    return { inputs, failures: await this.unsupported(resource, olds, inputs) };
  }

  async #lacking(
    resource: string | undefined,
    olds: Values,
    inputs: Values,
  ): Promise<readonly ResourceError[]> {
    const { definition } = this;
    const known = this.#withTenant(inputs, olds);
    const isNew = Object.keys(olds).length === 0;
    const { tenant } = known as { tenant?: string };
    if (hasUnknown(tenant)) return [];
    const needs = definition.needs?.(known, isNew ? undefined : olds) ?? [];
    const isStrict = needs.length > 0 && this.#runtime.connection().requiresEnforcedExpiry;
    const needed = needs.filter(({ isUnchanged = false }) => isStrict || !isUnchanged);
    const mayBeIdle = isNew && definition.actsIn !== undefined;
    if (needed.length === 0 && !mayBeIdle) return [];
    const server = await this.#onService(resource, async (service) => {
      const { dialect } = await service.client.serverVersion();
      return needed.length > 0 || hasDifference(dialect, "access modes") ? service.server(tenant) : undefined;
    });
    if (mayBeIdle && server?.accessMode !== undefined) this.#reportIdle(server.accessMode, resource, tenant);
    if (!server) return [];
    const lacked = needed.filter(({ capability }) => {
      // A server that the credential cannot identify may not enforce the end.
      const isUnclear = isStrict && server.isOwn === undefined && lackNotice(capability) !== undefined;
      return isUnclear || !hasCapability(server, capability);
    });
    const faults = lacked.flatMap(({ capability, field }) => {
      const notice = isStrict ? undefined : lackNotice(capability);
      if (notice === undefined) return [lackFault(server, capability, field)];
      this.#tellOnce({ text: notice }, resource);
      return [];
    });
    const verified = await this.#onService(resource, async (service) =>
      lacked.length > 0 || hasUnknown(known) ? [] : this.#brokenReferences(service, known, olds),
    );
    return [...faults, ...verified].map((fault) => new ResourceError(definition.name, fault));
  }

  /** Returns the errors in inputs that refer to objects that do not exist. */
  async #brokenReferences(service: Connection, inputs: Values, olds: Values): Promise<readonly Failure[]> {
    const { tenant } = inputs as { tenant?: string };
    const isClaimed = (key: string) => this.#runtime.run.isClaimed(key);
    const failures = Object.entries(this.definition.inputs).map(([name, { references }]) =>
      references?.(service, inputs[name], olds[name], { tenant, isClaimed }),
    );
    return (await Promise.all(failures)).filter((failure) => failure !== undefined);
  }

  /** Sends a message unless the run has sent a message with this key before. */
  #tellOnce(notice: Notice, resource: string | undefined, key = noticeText(notice)): void {
    if (this.#runtime.run.isFirst(key)) this.#runtime.tell(notice, resource);
  }

  /** Returns the error that the access by a new object would already have ended. */
  #pastEnd(olds: Values, inputs: Values): readonly ResourceError[] {
    const { name } = this.definition;
    const value = Object.keys(olds).length === 0 ? endedAt(this.definition, inputs, new Date()) : undefined;
    if (value === undefined) return [];
    const detail = said`must be in the future, because the object does not exist yet`;
    const remedy = said`set a later time, or delete the declaration`;
    return [new ResourceError(name, { code: "invalid_input", field: ["expiresAt"], value, detail, remedy })];
  }

  /** Reports that the declared access of a resource has ended, and that the server does not end it. */
  #reportEnds(resource: string | undefined, state: Values, inputs: Values): void {
    if (!this.#runtime.run.isDeclared(resource)) return;
    const now = new Date();
    const end = endedAt(this.definition, inputs, now);
    if (end !== undefined) {
      const notice = this.#about(
        resource,
        `expired ${agoText(end, now)}; delete this resource from the program`,
      );
      this.#tellOnce(notice, resource, `expired ${resource}`);
    }
    for (const { lacked } of Object.values(this.definition.outputs)) {
      const text = lacked?.(state);
      if (text !== undefined) this.#tellOnce({ text }, resource);
    }
  }

  /** Reports the reasons of changes that the program did not make. */
  #reportReasons(resource: string | undefined, changes: readonly InputChange[]): void {
    if (!this.#runtime.run.isDeclared(resource)) return;
    for (const { field, reason } of changes)
      if (reason) this.#tellOnce(this.#about(resource, reason), resource, `${field} ${resource}`);
  }

  /** Reports that the update of a moved object claims the object. */
  #reportClaim(resource: string | undefined, before: string): void {
    if (!this.#runtime.run.isDeclared(resource)) return;
    const text = `claims the object, which ${declarationText(declarationOf(before))} declared before`;
    this.#tellOnce(this.#about(resource, text), resource, `claims ${resource}`);
  }

  #about(resource: string, text: Notice["text"]): Notice {
    return { about: { type: this.definition.name, name: urnName(resource) }, text };
  }

  /** Returns a state in the form of this version. */
  #current = (state: Values): Values => currentState(this.definition, state);

  /** Reports once for each namespace that objects of this type have no effect there. */
  #reportIdle(mode: SshAccessMode, resource: string | undefined, tenant: string | undefined): void {
    const { actsIn = mode, name } = this.definition;
    if (actsIn === mode) return;
    const text = `${name}: the namespace authorizes logins by ${MODES[mode].deciding}, so ${MODES[actsIn].acting} have no effect there`;
    this.#tellOnce({ text }, resource, `${text} ${tenant}`);
  }

  async #refuseUnsupported(resource: string | undefined, olds: Values, inputs: Values): Promise<void> {
    const [first] = [...this.#pastEnd(olds, inputs), ...(await this.#lacking(resource, olds, inputs))];
    if (first) throw first;
  }

  /**
   * Returns the project, stack and resource that declare an object, as one text. Front ends store the text with the
   * state after each write, so that a diff detects without a request that an object has moved. Undefined for resource
   * types whose objects have no declaration.
   */
  declarer(resource: string | undefined): string | undefined {
    const declaration = this.#declaration(resource);
    return declaration && claimedObject(this.definition) ? declaredByText(declaration) : undefined;
  }

  #isMoved(resource: string | undefined, before: unknown): before is string {
    const now = this.declarer(resource);
    return typeof before === "string" && now !== undefined && before !== now;
  }

  #declaration(resource: string | undefined, mark?: string): Declaration | undefined {
    const declaration = this.#runtime.declaration(this.definition, resource);
    return declaration && { ...declaration, resource: markedResource(declaration.resource, mark) };
  }

  /** Compares the state with checked inputs, without sending a request. */
  diff(
    resource: string | undefined,
    id: string,
    given: Values,
    inputs: Values,
    { isRequested = false, declarer }: DiffOptions = {},
  ): Compared {
    const { run, isReplacementRequested } = this.#runtime;
    const state = this.#current(given);
    this.#reportEnds(resource, state, inputs);
    const changes = diff(this.definition, state, inputs);
    this.#reportReasons(resource, changes);
    const replaces = changes.filter((change) => change.replaces).map((change) => change.field);
    if (isRequested || (resource !== undefined && isReplacementRequested(resource))) replaces.push("id");
    run.compared(this.definition, resource, { id, state }, replaces.length > 0);
    const claims = replaces.length === 0 && this.#isMoved(resource, declarer);
    if (claims) this.#reportClaim(resource, declarer as string);
    return { changes, replaces, claims, deleteBeforeReplace: this.definition.deletesFirst ?? false };
  }

  /**
   * Creates or adopts the object.
   * @throws UnfinishedError if the object exists, but could not be updated to match the inputs
   */
  async create(creator: Creator, inputs: Record<string, unknown>): Promise<CreatedObject> {
    const { definition } = this;
    const { run, tell } = this.#runtime;
    const { resource, secretInputs, mark, inherits } = creator;
    const origin = run.origin(definition, creator, inputs);
    const about = { type: definition.name, name: origin.name };
    const declaration = this.#declaration(resource);
    let isAdopted = false;
    const adopted = (id: string) => {
      isAdopted = true;
      tell({ about, text: adoptionText(id) }, resource);
    };
    await this.#refuseUnsupported(resource, {}, inputs);
    try {
      const created = await this.#onService(resource, (service) =>
        createOrAdopt({
          definition,
          inputs,
          origin,
          declaration,
          secretInputs,
          adopted,
          connection: this.#declaring(service, resource),
          adopting: this.#declaring(service, resource, mark),
          inherits,
          inherited: () => {
            isAdopted = true;
          },
        }),
      );
      run.created(definition, resource, created);
      // A write during the adoption has declared the object, and its result contains no facts of the object.
      if (isAdopted && created.live) await this.#claim(resource, created, mark);
      const warning = definition.warning?.(created.state);
      if (warning !== undefined) tell({ about, text: warning }, resource);
      return { ...created, isAdopted };
    } catch (error) {
      if (error instanceof UnfinishedError) origin.claim(error.id);
      throw error;
    }
  }

  /**
   * Updates the object and returns its new state, which matches {@link plannedUpdate}. If the object has moved, also
   * claims the object.
   * @throws ResourceError (`changed_out_of_band`) if the update would revert a change of another actor
   */
  async update(
    resource: string | undefined,
    id: string,
    given: Values,
    inputs: Values,
    { declarer, secretInputs, mark }: UpdateOptions = {},
  ): Promise<Values> {
    const { definition } = this;
    const state = this.#current(given);
    await this.#refuseUnsupported(resource, state, inputs);
    try {
      const wanted = settled(definition, state, inputs);
      const isMoved = this.#isMoved(resource, declarer);
      const isSame = isMoved && diff(definition, state, wanted).length === 0;
      const update = { definition, id, state, inputs: wanted, secretInputs };
      const after = isSame
        ? state
        : await this.#writing(resource, (service) => updateUnchanged(service, update), mark);
      if (isMoved) await this.#claim(resource, { id, state: after }, mark);
      return { ...after, ...lastingOutputs(definition, state, wanted) };
    } catch (error) {
      throw isMissingObject(error) ? deletedError(definition, id, error) : error;
    }
  }

  /**
   * Returns the error that {@link update} would throw because another actor changed the object. Undefined if the update
   * sends nothing to the service, or if the service cannot be read: the update checks the object again.
   */
  async previewUpdate(
    resource: string | undefined,
    id: string,
    given: Values,
    inputs: Values,
    { secretInputs }: UpdateOptions = {},
  ): Promise<ResourceError | undefined> {
    const { definition } = this;
    const state = this.#current(given);
    const isSent = diff(definition, state, inputs).some(({ field }) => !definition.inputs[field]?.isLocal);
    if (!isSent || this.#isUnchecked) return undefined;
    try {
      const update = { definition, id, state, inputs: settled(definition, state, inputs), secretInputs };
      return await this.#onService(resource, (service) => changeConflict(service, update));
    } catch (error) {
      if (!(error instanceof RequestError || error instanceof ConfigurationError)) throw error;
      this.#isUnchecked ||= isUnreachable(error);
      return undefined;
    }
  }

  /**
   * Stores the resource as the declarer of an object, which is read if its facts are unknown. Does nothing on other
   * servers: their objects have no revision.
   */
  async #claim(
    resource: string | undefined,
    { id, state, live }: Existing<Values>,
    mark?: string,
  ): Promise<void> {
    const { definition } = this;
    const object = claimedObject(definition);
    const body = this.#declaration(resource, mark);
    if (!object || !body || declaredByText(body) === undefined) return;
    await this.#onService(resource, async (service) => {
      // Another actor may have renamed an API key since the state was written, so its present name counts.
      const found = live ? { id, state, live } : await definition.read(service, id, state);
      if (found?.live?.revision === undefined) return;
      const { tenant, client } = await service.tenant(tenantOf({ id, state }));
      const params = { tenant, kind: object.kind, id: objectId(definition, found) };
      await client.claimObject({ params, body });
    });
  }

  /**
   * Returns the current object, or undefined if it no longer exists.
   * @param given the state; for an import, nothing or some of the program's inputs
   * @param open the program's inputs, or the result of {@link openInputs}
   */
  async read(
    resource: string | undefined,
    id: string,
    given: Values,
    open?: Values,
  ): Promise<ReadObject | undefined> {
    const { definition } = this;
    const isImport = !isState(definition, given);
    const state = isImport ? {} : this.#current(given);
    const found = await this.#onService(resource, (service) =>
      undefinedIfDeleted(service, state.tenant, () => definition.read(service, id, state)),
    );
    if (!found) {
      const text = isImport ? undefined : missingText(definition, state, new Date());
      // Dynamic providers do not pass the resource's name to a read.
      const name = resource === undefined ? String(state.name ?? id) : urnName(resource);
      if (text !== undefined) this.#runtime.tell({ about: { type: definition.name, name }, text }, resource);
      return undefined;
    }
    const kept = keepText(definition, state, found);
    if (isImport) return { ...kept, inputs: canonicalInputs(definition.inputs, kept.state) };
    if (!open) return kept;
    // If a program ignores changes of an input (`ignoreChanges`), engines take this input from the state. A read must
    // therefore return inputs that match the current object.
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

  /** Deletes the object, unless another stack has declared it last. */
  async delete(
    resource: string | undefined,
    id: string,
    state: Values,
    options: DeleteOptions = {},
  ): Promise<void> {
    const { definition } = this;
    const { run } = this.#runtime;
    if (run.isHeld(definition, id)) return;
    await this.#leavingClaimed({ resource, id, state }, options, (service) => {
      const step = () => definition.delete(service, id, state, (key) => run.isClaimed(key));
      return undefinedIfDeleted(service, state.tenant, step);
    });
  }

  /**
   * Runs the deletion of an object. If another stack has declared the object last, the object stays on the service, and
   * the user gets a notice. The declaration is read right before the first write.
   */
  async #leavingClaimed(
    { resource, id, state }: Existing<Values> & { readonly resource: string | undefined },
    { isOthers = (_owner, isForeign) => isForeign, declarer }: DeleteOptions,
    remove: (service: Connection) => Promise<unknown>,
  ): Promise<void> {
    const { definition } = this;
    const known = typeof declarer === "string" ? declarationOf(declarer) : undefined;
    const declaration = this.#declaration(resource) ?? known;
    const check = async (service: Connection) => {
      if (!declaration || !claimedObject(definition)) return undefined;
      const owner = (await definition.read(service, id, state))?.live?.declaredBy;
      if (owner && isOthers(owner, !isSameStack(owner, declaration))) throw new ClaimedError(owner);
      return undefined;
    };
    try {
      await this.#writing(resource, (service) =>
        remove(service.deletesClaimed ? service : service.checkingFirstWrite(() => check(service))),
      );
    } catch (error) {
      if (!(error instanceof ClaimedError)) throw error;
      const name = resource === undefined ? (declaration?.resource ?? id) : urnName(resource);
      const text = leftText(id, declarationText(error.owner));
      this.#runtime.tell({ about: { type: definition.name, name }, text }, resource);
    }
  }

  // Diffs skip omitted inputs. An omitted namespace is filled in, so that a change of the default namespace is
  // detected.
  #withTenant(given: Values, { tenant: before }: Values): Values {
    if (!this.definition.inputs.tenant || given.tenant) return given;
    const tenant = this.#runtime.defaultTenant();
    // A default namespace that is not known yet does not cause a replacement of an existing object.
    return before !== undefined && hasUnknown(tenant) ? given : { ...given, tenant };
  }

  #duplicates(resource: string | undefined, inputs: Values, olds: Values): readonly ResourceError[] {
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

  /** Runs work that may write, and sends the declaration of the resource with the writes. */
  #writing<T>(
    resource: string | undefined,
    step: (service: Connection) => Promise<T>,
    mark?: string,
  ): Promise<T> {
    return this.#onService(resource, (service) => step(this.#declaring(service, resource, mark)));
  }

  /** Returns a connection whose writes carry the declaration of the resource. */
  #declaring(service: Connection, resource: string | undefined, mark?: string): Connection {
    const declaration = this.#declaration(resource, mark);
    return declaration ? service.declaring(declaration) : service;
  }

  async #onService<T>(resource: string | undefined, step: (service: Connection) => Promise<T>): Promise<T> {
    const service = this.#runtime.connection();
    return service.telling(
      (text) => this.#runtime.tell({ text }, resource),
      () => step(service),
    );
  }
}

/** Ends the deletion of an object that another stack has declared last. */
class ClaimedError extends Error {
  readonly owner: Declaration;

  constructor(owner: Declaration) {
    super("another stack has declared the object");
    this.owner = owner;
  }
}

/**
 * Returns a notice about an object that no longer exists, if its successor will have another secret. The text follows the
 * name of the resource.
 */
function missingText({ outputs }: ResourceDefinition, { expiresAt }: Values, now: Date): string | undefined {
  if (!Object.values(outputs).some(({ secret }) => secret)) return undefined;
  const next = "the next run creates a new key";
  return typeof expiresAt === "string" && hasEnded(expiresAt, now)
    ? `expired ${agoText(expiresAt, now)} and no longer exists; ${next}`
    : `was revoked or deleted outside the program; ${next}`;
}

/**
 * Returns true if the values are a state. For an import, engines pass only some of the program's inputs, or nothing.
 */
function isState({ outputs }: ResourceDefinition, given: Values): boolean {
  const decided = Object.keys(outputs);
  return decided.length === 0
    ? Object.keys(given).length > 0
    : decided.some((name) => given[name] !== undefined);
}

/**
 * Runs a step that reads or deletes an object. Returns undefined if the object or its namespace was deleted out of
 * band. A 404 that a proxy may have sent is an error, unless the step itself found a proof that the object is missing.
 * @throws Error if the credential's user is not a member of the namespace. A 404 then does not prove that the object was
 * deleted
 */
async function undefinedIfDeleted<T>(
  connection: Connection,
  tenant: unknown,
  step: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    if (isProvenMissing(error)) return undefined;
    const isRefused = isNoToken(error) || error instanceof AuthenticationError;
    if (!isRefused || typeof tenant !== "string") throw error;
    // If the namespace was deleted, the object no longer exists. If only the user's membership ended, the object still
    // exists.
    if (await isDeleted(connection, tenant)) return undefined;
    throw isNoToken(error) ? noMember(tenant, error) : error;
  }
}

function noMember(tenant: string, cause: unknown): Error {
  const detail = `The user of the credential is not a member of the namespace ${tenant}, so its objects cannot be read`;
  const remedy = "add the user to the namespace, or use another credential";
  return new ConfigurationError(detail, { field: ["credential"], remedy, cause });
}

function deletedError({ name }: ResourceDefinition, id: string, cause: unknown): ResourceError {
  const fault: ResourceFault = {
    code: "object_deleted",
    detail: said`The object ${id}, or the object that it belongs to, no longer exists: it was deleted after the state was written`,
    remedy: said`${{ phrase: "refresh" }} to create it again`,
  };
  return new ResourceError(name, fault, { cause });
}

async function isDeleted({ client, namespaces }: Connection, tenant: string): Promise<boolean> {
  try {
    await client.getNamespace({ params: { tenant } });
    return false;
  } catch (error) {
    if (isProvenMissing(error)) return true;
    if (isMissingObject(error)) return !(await namespaces.isListed(tenant));
    // A 403 shows that the namespace exists, but the user is not a member of the namespace. If the service issues no
    // token for the namespace, the cause may be the same. In both cases, the namespace is not treated as deleted.
    if (error instanceof PermissionError || isNoToken(error)) return false;
    throw error;
  }
}

/**
 * Returns the object, but keeps the state's notation of unchanged inputs. If no input changed, the state's volatile
 * outputs are kept too, because changes of volatile outputs are not drift. If an older provider version wrote the
 * state, nested properties that the state lacks count as set to their defaults.
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
    ...found,
    state: { ...found.state, ...Object.fromEntries(kept.map((name) => [name, before[name]])) },
  };
}
