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
  /** The resource that the message is about: its resource type and its name in the program. */
  readonly about?: { readonly type: string; readonly name: string };
  readonly text: string | Message;
}

/** Returns a notice as a string. @param words the terms of the front end; by default, the terms of Pulumi */
export function noticeText({ about, text }: Notice, words?: Words): string {
  const written = typeof text === "string" ? text : messageText(text, words);
  return about ? `${about.type} "${about.name}": ${written}` : written;
}

/** The data and functions that the resources of one process share. */
export interface Runtime {
  readonly run: RunRecord;
  /**
   * Returns the id of the default namespace, which resources without `tenant` use. Returns undefined if no setting
   * defines the default namespace. Returns {@link UNKNOWN} while the setting is unknown.
   */
  defaultTenant(): string | undefined;
  /**
   * Returns the declaration of an object, that is, the project, stack and resource that declare it. All writes of the
   * object send the declaration.
   * @param resource the resource's name in the engine, if the engine passes a name
   */
  declaration(definition: ResourceDefinition, resource: string | undefined): Declaration | undefined;
  /** Returns true if the user requested the replacement of the resource with this URN in a `gatehouse` command. */
  isReplacementRequested(urn: string): boolean;
  /**
   * Returns the connection of the run. The connection is opened when a resource first needs the service.
   * @throws ConfigurationError with the missing or wrong variable and its allowed values
   */
  connection(): Connection;
  /** Sends a message about a resource to the user who runs the program. */
  tell(notice: Notice, resource: string | undefined): void;
}

/** The result of a comparison between a resource's state and the program's inputs. */
export interface Compared {
  readonly changes: readonly InputChange[];
  /** Names of the inputs that require a replacement. If the user requested the replacement, also contains `id`. */
  readonly replaces: readonly string[];
  /** True if a replacement must delete the old object before it creates the new object. */
  readonly deleteBeforeReplace: boolean;
  /**
   * True if, according to the state, a different resource or stack declared the object before. The update then claims
   * the object, that is, it stores the current resource as the declarer of the object.
   */
  readonly claims: boolean;
}

/** The options of {@link ResourceLifecycle.diff}. */
export interface DiffOptions {
  /** True if the program requests a replacement through an attribute that is not an input of the resource type. */
  readonly isRequested?: boolean;
  /** The value of {@link ResourceLifecycle.declarer} in the state. Undefined if the state contains no such value. */
  readonly declarer?: unknown;
}

/** The options of {@link ResourceLifecycle.update} and {@link ResourceLifecycle.previewUpdate}. */
export interface UpdateOptions extends Pick<DiffOptions, "declarer"> {
  /** Names of inputs whose values must not appear in errors, if the engine provides them. */
  readonly secretInputs?: readonly string[];
  /** The mark of the resource instance, for the declaration that the update stores. See {@link markedResource}. */
  readonly mark?: string | undefined;
}

/** The options of {@link ResourceLifecycle.delete}. */
export interface DeleteOptions extends Pick<DiffOptions, "declarer"> {
  /**
   * Returns true if the deletion must leave the object on the service, because a different resource was the last to
   * declare it.
   * @param isForeign true if the owner belongs to a different project or stack
   * @default returns `isForeign`
   */
  readonly isOthers?: (owner: Declaration, isForeign: boolean) => boolean;
}

/** An object after a create. */
export interface CreatedObject extends Existing<Values> {
  /** True if the object already existed, and was adopted or inherited. */
  readonly isAdopted: boolean;
}

/**
 * The kinds of objects for each access mode of a namespace: the objects that authorize logins, and all objects that
 * have an effect in this mode.
 */
const MODES: Readonly<Record<SshAccessMode, { readonly deciding: string; readonly acting: string }>> = {
  legacy: { deciding: "public keys", acting: "public keys and firewall rules" },
  identity: { deciding: "access policies", acting: "access policies and service accounts" },
  unknown: { deciding: "objects that this version does not know", acting: "these objects" },
};

interface ReadObject extends Existing<Values> {
  /**
   * The inputs that declare the object in its current state. Undefined if the inputs in the state already match the
   * object, or if the program's inputs are not available.
   */
  readonly inputs?: Values;
}

/**
 * Returns true if the object on the service does not show whether a program set this input. There are two kinds of such
 * inputs. Instructions to the run, such as `adopt`, are not part of the object. If an optional input without a default
 * is omitted, the service chooses a value, and the object does not show whether the value comes from the program.
 */
const isOpen = ({ transient, required, default: fallback }: InputField): boolean =>
  transient || (!required && fallback === undefined);

/**
 * Returns the inputs that the program sets, but only if the object on the service does not show that the program sets
 * them. Instructions such as `adopt` keep their values. Optional inputs get the value null, because their values can be
 * read from the object.
 */
export const openInputs = ({ inputs }: ResourceDefinition, declared: Values): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(declared).flatMap(([name, value]) => {
      const field = inputs[name];
      return field && isOpen(field) ? [[name, field.transient ? value : null]] : [];
    }),
  );

/**
 * The operations that engines run on resources of one type. They are independent of the front end (Pulumi or
 * Terraform). Values contain no engine-specific data except the string for unknown values. Resources are identified by
 * their URNs.
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
   * capability that some servers lack. A preview may run without the service. So if a request fails, the result is
   * empty, and the create or update checks the inputs again.
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
      // If the credential cannot identify the server, the server may not enforce the expiry time.
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

  /** Returns the errors for inputs that refer to objects that do not exist. */
  async #brokenReferences(service: Connection, inputs: Values, olds: Values): Promise<readonly Failure[]> {
    const { tenant } = inputs as { tenant?: string };
    const isClaimed = (key: string) => this.#runtime.run.isClaimed(key);
    const failures = Object.entries(this.definition.inputs).map(([name, { references }]) =>
      references?.(service, inputs[name], olds[name], { tenant, isClaimed }),
    );
    return (await Promise.all(failures)).filter((failure) => failure !== undefined);
  }

  /** Sends a message, unless the run has already sent a message with this key. */
  #tellOnce(notice: Notice, resource: string | undefined, key = noticeText(notice)): void {
    if (this.#runtime.run.isFirst(key)) this.#runtime.tell(notice, resource);
  }

  /** Returns an error if the expiry time of a new object is in the past. */
  #pastEnd(olds: Values, inputs: Values): readonly ResourceError[] {
    const { name } = this.definition;
    const value = Object.keys(olds).length === 0 ? endedAt(this.definition, inputs, new Date()) : undefined;
    if (value === undefined) return [];
    const detail = said`must be in the future, because the object does not exist yet`;
    const remedy = said`set a later time, or delete the declaration`;
    return [new ResourceError(name, { code: "invalid_input", field: ["expiresAt"], value, detail, remedy })];
  }

  /**
   * Reports that the declared access of a resource has expired. Also reports capabilities that the server lacks, for
   * example if the server does not enforce expiry times.
   */
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

  /** Reports the reasons for changes that the program did not make. */
  #reportReasons(resource: string | undefined, changes: readonly InputChange[]): void {
    if (!this.#runtime.run.isDeclared(resource)) return;
    for (const { field, reason } of changes)
      if (reason) this.#tellOnce(this.#about(resource, reason), resource, `${field} ${resource}`);
  }

  /** Reports that an update claims an object that a different resource or stack declared before. */
  #reportClaim(resource: string | undefined, before: string): void {
    if (!this.#runtime.run.isDeclared(resource)) return;
    const text = `claims the object, which ${declarationText(declarationOf(before))} declared before`;
    this.#tellOnce(this.#about(resource, text), resource, `claims ${resource}`);
  }

  #about(resource: string, text: Notice["text"]): Notice {
    return { about: { type: this.definition.name, name: urnName(resource) }, text };
  }

  /** Converts a state to the format of this version. */
  #current = (state: Values): Values => currentState(this.definition, state);

  /** Reports that objects of this type have no effect in a namespace. Reports this once for each namespace. */
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
   * Returns the project, stack and resource that declare an object, as one string. Front ends store this string with
   * the state after each write. A diff can then detect that an object has moved, without a request. Returns undefined
   * for resource types whose objects have no declaration.
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
      // An update during the adoption already declares the object. Its result does not contain `live`, so the object
      // needs no further claim.
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
   * Updates the object and returns its new state, which matches {@link plannedUpdate}. If the object has moved from a
   * different resource or stack, also stores this resource as its declarer.
   * @throws ResourceError (`changed_out_of_band`) if the update would revert a change that a different actor made
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
   * Returns the error that {@link update} would throw because a different actor changed the object. Returns undefined
   * if the update would send nothing to the service. Also returns undefined if the service cannot be read, because the
   * update checks the object again.
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
   * Stores the resource as the declarer of an object. Reads the object first if `live` is undefined. Has no effect on
   * other servers, because their objects have no revision.
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
      // Uses the current name of an API key, because a different actor may have renamed the key since the state was
      // written.
      const found = live ? { id, state, live } : await definition.read(service, id, state);
      if (found?.live?.revision === undefined) return;
      const { tenant, client } = await service.tenant(tenantOf({ id, state }));
      const params = { tenant, kind: object.kind, id: objectId(definition, found) };
      await client.claimObject({ params, body });
    });
  }

  /**
   * Returns the current object. Returns undefined if the object no longer exists.
   * @param given the state; for an import, some of the program's inputs, or no values
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
    // If a program ignores changes to an input (`ignoreChanges`), engines use the value of this input in the state. So
    // a read must return inputs that match the current object.
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

  /** Deletes the object, unless a different stack was the last to declare it. */
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
   * Runs the deletion of an object. If a different stack was the last to declare the object, the object stays on the
   * service, and the user gets a notice. The declaration is read immediately before the first write.
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

  // Diffs skip omitted inputs. So an omitted namespace is replaced with the default namespace. A diff then detects a
  // change to the default namespace.
  #withTenant(given: Values, { tenant: before }: Values): Values {
    if (!this.definition.inputs.tenant || given.tenant) return given;
    const tenant = this.#runtime.defaultTenant();
    // While the default namespace is unknown, it does not cause a replacement of an existing object.
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

  /** Runs a step that may write. All writes send the declaration of the resource. */
  #writing<T>(
    resource: string | undefined,
    step: (service: Connection) => Promise<T>,
    mark?: string,
  ): Promise<T> {
    return this.#onService(resource, (service) => step(this.#declaring(service, resource, mark)));
  }

  /** Returns a connection that sends the declaration of the resource with each write. */
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

/** Thrown to stop the deletion of an object, because a different stack was the last to declare it. */
class ClaimedError extends Error {
  readonly owner: Declaration;

  constructor(owner: Declaration) {
    super("another stack has declared the object");
    this.owner = owner;
  }
}

/**
 * Returns a notice about an object that no longer exists, if the next run will create an object with a different
 * secret. The name of the resource precedes the notice.
 */
function missingText({ outputs }: ResourceDefinition, { expiresAt }: Values, now: Date): string | undefined {
  if (!Object.values(outputs).some(({ secret }) => secret)) return undefined;
  const next = "the next run creates a new key";
  return typeof expiresAt === "string" && hasEnded(expiresAt, now)
    ? `expired ${agoText(expiresAt, now)} and no longer exists; ${next}`
    : `was revoked or deleted outside the program; ${next}`;
}

/**
 * Returns true if the values are a complete state. For an import, engines pass only some of the program's inputs, or no
 * values.
 */
function isState({ outputs }: ResourceDefinition, given: Values): boolean {
  const decided = Object.keys(outputs);
  return decided.length === 0
    ? Object.keys(given).length > 0
    : decided.some((name) => given[name] !== undefined);
}

/**
 * Runs a step that reads or deletes an object. Returns undefined if the object or its namespace was deleted out of
 * band. A 404 that may come from a proxy is an error, unless the step has a proof that the object is missing.
 * @throws Error if the credential's user is not a member of the namespace. In this case, a 404 does not prove that the
 *   object was deleted
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
    // If the namespace was deleted, the object no longer exists. If the user is only no longer a member, the object
    // still exists.
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
    // After a 403, the namespace exists, but the user is not a member. If the service issues no token for the
    // namespace, the cause may be the same. In both cases, the namespace is not treated as deleted.
    if (error instanceof PermissionError || isNoToken(error)) return false;
    throw error;
  }
}

/**
 * Returns the object, but keeps the notation of unchanged inputs in the state. If no input changed, also keeps the
 * volatile outputs in the state, because their changes are not drift. If an older provider version wrote the state,
 * nested properties that are missing in the state are treated as if they had their default values.
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
