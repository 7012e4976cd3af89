import { printedError } from "@gatehouse-access/sdk/errors";
import { type Notice, ResourceLifecycle, type Runtime } from "../../lifecycle/lifecycle.ts";
import { RunRecord } from "../../lifecycle/runRecord.ts";
import { selectObject } from "../../lifecycle/selectObject.ts";
import { UnfinishedError } from "../../model/unfinishedError.ts";
import { definitions } from "../../resources/index.ts";
import { versionText } from "../../terraform/source.ts";
import { type Row, typeNameOf } from "../../terraform/types.ts";
import { type Configuration, noticesOfCall } from "./configuration.ts";
import {
  attributePath,
  type Diagnostic,
  errorAt,
  errorDiagnostic,
  noticeDiagnostic,
  warning,
} from "./diagnostics.ts";
import { instanceIn, type PrivateData, privateBytes, privateData } from "./privateData.ts";
import type { Replacements } from "./replacements.ts";
import { idIn, isSecret, TerraformResource } from "./resource.ts";
import { decodedRow, encoded, parsed, rowIn, type WireValue } from "./wireValues.ts";

/** A call that concerns one resource type, data source or ephemeral resource. */
export interface OfType {
  readonly typeName: string;
}

/** A call with a configuration. */
export interface WithConfig extends OfType {
  readonly config?: WireValue;
}

/** A state as Terraform stores it. A different provider version may have written the state. */
export interface RawState {
  readonly json?: Uint8Array;
}

/** A response to Terraform. */
interface Answer {
  readonly [field: string]: unknown;
  readonly diagnostics?: readonly Diagnostic[];
}

/** All resource types, by their names in Terraform. */
export const resources: ReadonlyMap<string, TerraformResource> = new Map(
  definitions.map((definition) => {
    const resource = new TerraformResource(definition);
    return [resource.typeName, resource];
  }),
);

/** Calls a function, and converts an error that it throws to a diagnostic. */
export async function withDiagnostics(
  summary: string,
  work: () => object | Promise<object>,
): Promise<object> {
  try {
    return await work();
  } catch (error) {
    return { diagnostics: [errorAt([], summary, printedError(error))] };
  }
}

/** Handles the resource calls of Terraform for one provider block, in one Terraform command. */
export class ResourceCalls {
  readonly #configuration: Configuration;
  readonly #lifecycles: ReadonlyMap<string, ResourceLifecycle>;
  readonly #objects: PlannedObjects;
  readonly #replacements: Replacements;
  #isStopped = false;

  constructor(configuration: Configuration, replacements: Replacements) {
    this.#configuration = configuration;
    this.#replacements = replacements;
    this.#objects = new PlannedObjects(replacements);
    const runtime: Runtime = {
      run: new RunRecord(),
      defaultTenant: () => configuration.tenant,
      declaration: ({ name }) =>
        configuration.workspace && { ...configuration.workspace, resource: typeNameOf({ name }) },
      isReplacementRequested: () => false,
      connection: () => configuration.service(),
      tell: (notice) => noticesOfCall.getStore()?.push(notice),
    };
    this.#lifecycles = new Map(
      [...resources].map(([type, { definition }]) => [type, new ResourceLifecycle(definition, runtime)]),
    );
  }

  /**
   * Stops the calls. Operations that have not started yet fail. Running operations finish, so that the state contains
   * every created object. Requests that wait for an unavailable service fail immediately.
   */
  stop(): void {
    this.#isStopped = true;
    this.#configuration.stopWaiting();
  }

  validate(
    request: WithConfig & { readonly clientCapabilities?: { writeOnlyAttributesAllowed?: boolean } },
  ): Promise<object> {
    return this.#answer(request, (resource, lifecycle) => {
      const config = rowIn(request.config);
      const isAllowed = request.clientCapabilities?.writeOnlyAttributesAllowed ?? false;
      const unsupported = resource.attributes.filter(
        ({ role, name }) => !isAllowed && isSecret(role) && config[name] !== null,
      );
      return {
        diagnostics: [
          ...unsupported.map(({ name }) => needsNewerTerraform(name)),
          ...resource.validate(lifecycle, config),
        ],
      };
    });
  }

  upgrade(request: OfType & { readonly rawState?: RawState }): Promise<object> {
    return this.#answer(request, (resource) => ({
      upgradedState: encoded(upgraded(resource, request.rawState)),
    }));
  }

  move(request: {
    readonly sourceProviderAddress?: string;
    readonly sourceTypeName?: string;
    readonly sourceState?: RawState;
    readonly sourcePrivate?: Uint8Array;
    readonly targetTypeName: string;
  }): Promise<object> {
    const { targetTypeName: typeName, sourceTypeName = "", sourceProviderAddress = "" } = request;
    return this.#answer({ typeName }, (resource) => {
      const isOwn = sourceProviderAddress.split("/").at(-1) === "gatehouse";
      if (isOwn && sourceTypeName === typeName) {
        const targetState = encoded(upgraded(resource, request.sourceState));
        return { targetState, targetPrivate: request.sourcePrivate };
      }
      const detail = `cannot move a ${sourceTypeName} of ${sourceProviderAddress} to ${typeName}; remove it from the state with a removed block, and import it as ${typeName}`;
      return { diagnostics: [errorAt([], "Unsupported move", detail)] };
    });
  }

  import(request: OfType & { readonly id: string }): Promise<object> {
    return this.#answer(request, async (resource) => {
      try {
        const { id } = await selectObject(resource.definition, this.#configuration.service(), request.id);
        return {
          importedResources: [{ typeName: request.typeName, state: encoded(resource.rowOfId(id)) }],
        };
      } catch (error) {
        return { diagnostics: [errorDiagnostic(resource.definition, error, "could not be imported")] };
      }
    });
  }

  read(
    request: OfType & { readonly currentState?: WireValue; readonly private?: Uint8Array },
  ): Promise<object> {
    return this.#answer(request, async (resource, lifecycle) => {
      const current = rowIn(request.currentState);
      const asItWas = { private: request.private, newState: request.currentState };
      if (this.#configuration.isUnknown) {
        const detail = `${resource.typeName} ${idIn(current)} keeps its state: a part of the provider configuration is not known before apply`;
        return { ...asItWas, diagnostics: [warning("Not refreshed", detail)] };
      }
      try {
        const found = await lifecycle.read(undefined, idIn(current), resource.valuesIn(current));
        const newState = encoded(found && resource.row(found, current));
        // The lifecycle returns inputs only for the first read after an import.
        if (!found?.inputs) return { ...asItWas, newState };
        const data = resource.importedData(found.id, found.live?.declaredBy);
        return { newState, private: privateBytes(data) };
      } catch (error) {
        return {
          ...asItWas,
          diagnostics: [errorDiagnostic(resource.definition, error, "could not be read")],
        };
      }
    });
  }

  plan(
    request: WithConfig & {
      readonly priorState?: WireValue;
      readonly proposedNewState?: WireValue;
      readonly priorPrivate?: Uint8Array;
    },
  ): Promise<object> {
    return this.#answer(request, async (resource, lifecycle) => {
      const prior = decodedRow(request.priorState);
      const before = privateData(request.priorPrivate);
      if (!decodedRow(request.proposedNewState)) {
        const conflict = prior && this.#objects.deletes(resource, prior, before);
        return {
          plannedState: encoded(null),
          plannedPrivate: request.priorPrivate,
          diagnostics: conflict ? [conflict] : [],
        };
      }
      const duplicate = prior && this.#objects.keeps(resource, prior, before);
      if (duplicate) return { diagnostics: [duplicate] };
      const name = this.#objects.nameOf(resource, prior ? idIn(prior) : before.object);
      const { planned, replaces, errors, update } = await resource.plan(
        lifecycle,
        name,
        rowIn(request.config),
        prior,
        before,
      );
      const reverted =
        update && (await lifecycle.previewUpdate(name, update.id, update.state, update.inputs));
      if (reverted) {
        return { diagnostics: [errorDiagnostic(resource.definition, reverted, "was changed out of band")] };
      }
      const conflict = prior ? undefined : this.#objects.creates(resource, planned, before);
      const warnings = prior ? [] : this.#recordReplacement(resource, before);
      // If the object must be replaced, for example because of `-replace`, Terraform plans the create of the new object
      // in a second call. Terraform passes no state to that call. It passes the private data, which contains the id of
      // the object.
      const data = prior ? { ...before, object: idIn(prior) } : before;
      return {
        plannedState: encoded(planned),
        requiresReplace: replaces.map((attribute) => attributePath(attribute)),
        plannedPrivate: privateBytes(data),
        diagnostics: [...errors, ...(conflict ? [conflict] : []), ...warnings],
      };
    });
  }

  /**
   * Records the planned replacement of an object. The apply needs the record if it creates the successor before it
   * deletes the replaced instance. Returns a warning if the record cannot be written.
   * @param before the private data of the replaced instance. For a new resource, the data contains no object
   */
  #recordReplacement({ typeName }: TerraformResource, before: PrivateData): Diagnostic[] {
    const { object: id, inheritedFrom = [] } = before;
    if (id === undefined) return [];
    try {
      this.#replacements.plan({ typeName, id, instances: [instanceIn(before), ...inheritedFrom] });
      return [];
    } catch (error) {
      return [warning("Replacement not recorded", `${NOT_RECORDED}: ${printedError(error)}`)];
    }
  }

  apply(
    request: WithConfig & {
      readonly priorState?: WireValue;
      readonly plannedState?: WireValue;
      readonly plannedPrivate?: Uint8Array;
    },
  ): Promise<object> {
    return this.#answer(request, async (resource, lifecycle) => {
      const before = privateData(request.plannedPrivate);
      const prior = decodedRow(request.priorState);
      const planned = decodedRow(request.plannedState);
      const config = rowIn(request.config);
      const step = !prior ? "created" : planned ? "updated" : "deleted";
      const failed = (error: unknown, state = prior, what = `could not be ${step}`, data = before) => ({
        newState: encoded(state),
        private: privateBytes(data),
        diagnostics: [errorDiagnostic(resource.definition, error, what, resource.secretsIn(config))],
      });
      if (this.#isStopped) return failed(new Error("not started: the run was cancelled"));
      try {
        if (planned && prior) {
          const { row, data, left } = await resource.update(lifecycle, config, prior, planned, before);
          if (left === undefined) return { newState: encoded(row), private: privateBytes(data) };
          return failed(left, row, left instanceof UnfinishedError ? NOT_COMPLETED : OLD_ONE_LEFT, data);
        }
        if (planned) {
          const { row, data } = await this.#create(resource, lifecycle, config, planned);
          return { newState: encoded(row), private: privateBytes(data) };
        }
        if (prior) await this.#delete(resource, lifecycle, prior, before);
        return { newState: encoded(null) };
      } catch (error) {
        if (!(error instanceof UnfinishedError) || !planned) return failed(error);
        if (error.existedBefore)
          return failed(error, prior, `already exists (${error.id}) and could not be updated`);
        // Terraform marks the result of a failed create as tainted, so the next apply recreates the object.
        const data = { object: error.id, declarer: lifecycle.declarer(undefined) };
        return failed(error, resource.row(error, planned), "was created, but is incomplete", data);
      } finally {
        this.#configuration.written();
      }
    });
  }

  /** Creates an object, or inherits the object of a replaced instance that Terraform will delete later. */
  async #create(resource: TerraformResource, lifecycle: ResourceLifecycle, config: Row, planned: Row) {
    const { typeName } = resource;
    const inherits = this.#replacements.hasPlanned(typeName)
      ? (id: string) => this.#replacements.planned({ typeName, id }) !== undefined
      : undefined;
    const { row, data } = await resource.create(lifecycle, config, planned, inherits);
    const replacement = inherits && this.#replacements.planned({ typeName, id: idIn(row) });
    if (!replacement) return { row, data };
    this.#replacements.complete(replacement);
    return { row, data: { ...data, inheritedFrom: replacement.instances } };
  }

  /** Deletes an object, unless another instance has inherited the object. */
  async #delete(resource: TerraformResource, lifecycle: ResourceLifecycle, prior: Row, before: PrivateData) {
    const object = { typeName: resource.typeName, id: idIn(prior) };
    if (this.#replacements.endRecord(object, instanceIn(before))) return;
    await lifecycle.delete(undefined, object.id, resource.valuesIn(prior), {
      isOthers: (owner, isForeign) => resource.isOthers(before, owner, isForeign),
    });
    // If Terraform creates the successor after this deletion, the successor gets a new object.
    this.#replacements.dropPlanned(object);
  }

  /** Handles a call for a resource. Converts an error to a diagnostic, also if the error is not from the lifecycle. */
  #answer(
    { typeName }: OfType,
    work: (resource: TerraformResource, lifecycle: ResourceLifecycle) => Answer | Promise<Answer>,
  ): Promise<object> {
    return withDiagnostics(`${typeName} failed`, async () => {
      const resource = resources.get(typeName);
      const lifecycle = this.#lifecycles.get(typeName);
      if (!resource || !lifecycle) throw new Error(`${typeName} is not a resource of this provider`);
      const notices: Notice[] = [];
      const answer = await noticesOfCall.run(notices, () => work(resource, lifecycle));
      if (notices.length === 0) return answer;
      const warnings = notices.map((notice) => noticeDiagnostic(resource.definition, notice));
      return { ...answer, diagnostics: [...(answer.diagnostics ?? []), ...warnings] };
    });
  }
}

const NOT_RECORDED =
  "if the resource has create_before_destroy, the apply rejects the existing object; set adopt = true, or make Terraform's data directory writable";

const NOT_COMPLETED = "was replaced, but the new object is incomplete; the next apply continues";

const OLD_ONE_LEFT = "was replaced, but the old object could not be deleted; the next apply retries";

const needsNewerTerraform = (name: string): Diagnostic =>
  errorAt(
    [name],
    `${name} requires a newer version`,
    `${name} is a write-only attribute, which requires ${versionText("writeOnly")}`,
  );

const upgraded = (resource: TerraformResource, raw: RawState | undefined): Row =>
  resource.upgraded((raw?.json?.length ? parsed(raw.json) : {}) as Row);

/**
 * The objects of one plan. Detects two resources that manage the same object, because they would overwrite each other's
 * changes. Terraform passes no resource addresses to providers, so the ids and keys of the objects are compared.
 * Terraform can delete and create objects in any order. Therefore, this class also rejects a plan that deletes an
 * object and declares the same object in another resource.
 */
class PlannedObjects {
  readonly #replacements: Replacements;
  /**
   * The private data of the instances that the plan keeps in the state. The map key is the type and id of the object.
   */
  readonly #staying = new Map<string, PrivateData>();
  /** The ids of the instances that the plan deletes. The map key is the type and id of the object. */
  readonly #deleted = new Map<string, string[]>();
  /**
   * The type and id of each object that the plan deletes. The map keys are the object's {@link
   * TerraformResource.objectKeys}.
   */
  readonly #deletedKeys = new Map<string, string>();
  /**
   * The private data of the instances that planned creates replace. The map keys are the {@link
   * TerraformResource.objectKeys} of the created object.
   */
  readonly #created = new Map<string, PrivateData>();
  /** The number of new resources so far. New resources are not in the state. */
  #newCount = 0;

  constructor(replacements: Replacements) {
    this.#replacements = replacements;
  }

  /**
   * Returns a name for a resource. Errors about two resources with the same object use it.
   * @param id the id of the object that the resource manages or replaces; undefined for a new resource
   */
  nameOf({ typeName }: TerraformResource, id: string | undefined): string {
    if (id !== undefined) return `::${typeName}::${id}`;
    this.#newCount += 1;
    return `::${typeName}::new ${this.#newCount}`;
  }

  /**
   * Records an object that the plan keeps.
   * @returns the error if another resource in the state manages the same object
   */
  keeps(resource: TerraformResource, prior: Row, data: PrivateData): Diagnostic | undefined {
    const object = objectOf(resource, prior);
    const deleted = this.#deleted.get(object) ?? [];
    const isTaken =
      this.#staying.has(object) ||
      !deleted.every((instance) => this.#isPast(resource, prior, data, instance));
    this.#staying.set(object, data);
    return isTaken ? alreadyManaged(object) : undefined;
  }

  /**
   * Records an object that the plan deletes.
   * @returns the error if another resource manages or declares the same object
   */
  deletes(resource: TerraformResource, prior: Row, data: PrivateData): Diagnostic | undefined {
    const object = objectOf(resource, prior);
    const keys = resource.objectKeys(prior);
    const instance = instanceIn(data);
    for (const key of keys) this.#deletedKeys.set(key, object);
    this.#deleted.set(object, [...(this.#deleted.get(object) ?? []), instance]);
    // When Terraform plans again during an apply, the successor has already inherited the object.
    if (this.#replacements.isPast({ typeName: resource.typeName, id: idIn(prior) }, instance))
      return undefined;
    const staying = this.#staying.get(object);
    if (staying) {
      return this.#isPast(resource, prior, staying, instance) ? undefined : alreadyManaged(object);
    }
    const successors = keys.flatMap((key) => this.#created.get(key) ?? []);
    const isLeft = successors.every((successor) => this.#isPast(resource, prior, successor, instance));
    return isLeft ? undefined : notMoved(object);
  }

  /**
   * Records an object that the plan creates.
   * @param replaced the private data of the replaced instance; empty for a new resource
   * @returns the error if the plan deletes the same object for another resource
   */
  creates(resource: TerraformResource, planned: Row, replaced: PrivateData): Diagnostic | undefined {
    const keys = resource.objectKeys(planned);
    for (const key of keys) this.#created.set(key, replaced);
    const isDeleted = keys.some((key) => {
      const object = this.#deletedKeys.get(key);
      if (object === undefined) return false;
      const row = { id: replaced.object };
      const isSame = object === objectOf(resource, row);
      return !(
        isSame &&
        (this.#deleted.get(object) ?? []).every((instance) => this.#isPast(resource, row, replaced, instance))
      );
    });
    return isDeleted ? notMoved(`the ${resource.typeName}`) : undefined;
  }

  /**
   * Returns true if an instance inherited its object from `instance`. A killed run may have left `instance` in the
   * state. In this case, records the replacement, so that the deletion of `instance` does not delete the object.
   */
  #isPast(
    { typeName }: TerraformResource,
    row: Row,
    { inheritedFrom = [] }: PrivateData,
    instance: string,
  ): boolean {
    if (!inheritedFrom.includes(instance)) return false;
    this.#replacements.complete({ typeName, id: idIn(row), instances: [instance] });
    return true;
  }
}

const objectOf = ({ typeName }: TerraformResource, prior: Row): string => `${typeName} ${idIn(prior)}`;

const alreadyManaged = (object: string): Diagnostic =>
  errorAt(
    [],
    "Two resources with one object",
    `${object} is in the state of two resources of this configuration; remove one of the two resources from the state (with a removed block with destroy = false, or with the command state rm)`,
  );

const notMoved = (object: string): Diagnostic =>
  errorAt(
    [],
    "An object is both deleted and declared",
    `this plan deletes ${object}, but another resource declares the same object; add a moved block to that resource, or apply the deletion first`,
  );
