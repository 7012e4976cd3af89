import { printedError } from "@gatehouse-access/sdk/errors";
import { type Notice, ResourceLifecycle, type Runtime } from "../../lifecycle/lifecycle.ts";
import { RunRecord } from "../../lifecycle/runRecord.ts";
import { selectObject } from "../../lifecycle/selectObject.ts";
import { UnfinishedError } from "../../resources/definition.ts";
import { definitions } from "../../resources/index.ts";
import { versionText } from "../../terraform/source.ts";
import { type Row, typeNameOf } from "../../terraform/types.ts";
import type { Configuration } from "./configuration.ts";
import {
  attributePath,
  type Diagnostic,
  errorAt,
  errorDiagnostic,
  noticeDiagnostic,
  warning,
} from "./diagnostics.ts";
import { idIn, isSecret, TerraformResource } from "./resource.ts";
import { decodedRow, encoded, parsed, rowIn, type WireValue } from "./wireValues.ts";

/** A call for one type of resource, data source or ephemeral resource. */
export interface OfType {
  readonly typeName: string;
}

/** A call with a configuration. */
export interface WithConfig extends OfType {
  readonly config?: WireValue;
}

/** A state as Terraform stores it, which another provider version may have written. */
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

/** Runs work, and converts an error to a diagnostic. */
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

/** The resource calls of one Terraform command, for one provider block. */
export class ResourceCalls {
  readonly #configuration: Configuration;
  readonly #lifecycles: ReadonlyMap<string, ResourceLifecycle>;
  readonly #objects = new PlannedObjects();
  #isStopped = false;

  constructor(configuration: Configuration) {
    this.#configuration = configuration;
    const runtime: Runtime = {
      run: new RunRecord(),
      defaultTenant: () => configuration.tenant,
      declaration: ({ name }) => ({ ...configuration.workspace, resource: typeNameOf({ name }) }),
      isReplacementRequested: () => false,
      connection: () => configuration.service(),
      tell: (notice) => configuration.notices.getStore()?.push(notice),
    };
    this.#lifecycles = new Map(
      [...resources].map(([type, { definition }]) => [type, new ResourceLifecycle(definition, runtime)]),
    );
  }

  /**
   * Stops the calls. No new operation starts. Running operations finish, so that the state contains every created
   * object. Their requests fail instead of waiting for an unavailable service.
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
    readonly targetTypeName: string;
  }): Promise<object> {
    const { targetTypeName: typeName, sourceTypeName = "", sourceProviderAddress = "" } = request;
    return this.#answer({ typeName }, (resource) => {
      const isOwn = sourceProviderAddress.split("/").at(-1) === "gatehouse";
      if (isOwn && sourceTypeName === typeName) {
        return { targetState: encoded(upgraded(resource, request.sourceState)) };
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
        return { ...asItWas, newState: encoded(found && resource.row(found, current)) };
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
      if (!decodedRow(request.proposedNewState)) {
        const conflict = prior && this.#objects.deletes(resource, prior);
        return { plannedState: encoded(null), diagnostics: conflict ? [conflict] : [] };
      }
      const duplicate = prior && this.#objects.keeps(resource, prior);
      if (duplicate) return { diagnostics: [duplicate] };
      const replaced = prior ? undefined : replacedIn(request.priorPrivate);
      const name = replaced ?? this.#objects.nameOf(resource, prior);
      const { planned, replaces, errors } = await resource.plan(
        lifecycle,
        name,
        rowIn(request.config),
        prior,
      );
      const conflict = prior ? undefined : this.#objects.creates(resource, planned);
      return {
        plannedState: encoded(planned),
        requiresReplace: replaces.map((attribute) => attributePath(attribute)),
        // If the object is replaced, for example because of `-replace`, Terraform next plans the create of the new
        // object. Terraform passes no state to that call, but it passes the private data. The private data therefore
        // contains the resource's name.
        ...(prior && { plannedPrivate: Buffer.from(JSON.stringify({ replaces: name })) }),
        diagnostics: conflict ? [...errors, conflict] : errors,
      };
    });
  }

  apply(
    request: WithConfig & { readonly priorState?: WireValue; readonly plannedState?: WireValue },
  ): Promise<object> {
    return this.#answer(request, async (resource, lifecycle) => {
      const prior = decodedRow(request.priorState);
      const planned = decodedRow(request.plannedState);
      const config = rowIn(request.config);
      const step = !prior ? "created" : planned ? "updated" : "deleted";
      const failed = (error: unknown, state = prior, what = `could not be ${step}`) => ({
        newState: encoded(state),
        diagnostics: [errorDiagnostic(resource.definition, error, what, resource.secretsIn(config))],
      });
      if (this.#isStopped) return failed(new Error("not started: the run was cancelled"));
      try {
        if (planned && prior) {
          const { row, left } = await resource.update(lifecycle, config, prior, planned);
          if (left === undefined) return { newState: encoded(row) };
          return failed(left, row, left instanceof UnfinishedError ? NOT_COMPLETED : OLD_ONE_LEFT);
        }
        if (planned) return { newState: encoded(await resource.create(lifecycle, config, planned)) };
        if (prior) await lifecycle.delete(undefined, idIn(prior), resource.valuesIn(prior));
        return { newState: encoded(null) };
      } catch (error) {
        if (!(error instanceof UnfinishedError) || !planned) return failed(error);
        if (error.existedBefore)
          return failed(error, prior, `already exists (${error.id}) and could not be updated`);
        // Terraform recreates the object, because it marks the result of a failed create as tainted.
        return failed(error, resource.row(error, planned), "was created, but is incomplete");
      } finally {
        this.#configuration.written();
      }
    });
  }

  /** Handles a call for a resource. Errors outside the lifecycle also become diagnostics. */
  #answer(
    { typeName }: OfType,
    work: (resource: TerraformResource, lifecycle: ResourceLifecycle) => Answer | Promise<Answer>,
  ): Promise<object> {
    return withDiagnostics(`${typeName} failed`, async () => {
      const resource = resources.get(typeName);
      const lifecycle = this.#lifecycles.get(typeName);
      if (!resource || !lifecycle) throw new Error(`${typeName} is not a resource of this provider`);
      const notices: Notice[] = [];
      const answer = await this.#configuration.notices.run(notices, () => work(resource, lifecycle));
      if (notices.length === 0) return answer;
      const warnings = notices.map((notice) => noticeDiagnostic(resource.definition, notice));
      return { ...answer, diagnostics: [...(answer.diagnostics ?? []), ...warnings] };
    });
  }
}

/**
 * Returns the name of the resource that the planned create replaces, from Terraform's private data. Undefined if the
 * create is not a replacement.
 */
const replacedIn = (marked: Uint8Array | undefined): string | undefined =>
  marked?.length ? (parsed(marked) as { readonly replaces?: string }).replaces : undefined;

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
 * The objects of one plan. This class detects two resources that manage the same object and would overwrite each
 * other's changes. Terraform passes no resource addresses to providers, so the objects' ids and keys are compared.
 * Terraform deletes and creates objects in any order, so this class also rejects a plan that deletes an object and
 * declares the same object in another resource.
 */
class PlannedObjects {
  /** Types and ids of the objects that the plan keeps in the state. */
  readonly #staying = new Set<string>();
  /** The objects that the plan deletes, each by its type and id and by its {@link TerraformResource.objectKeys}. */
  readonly #deleted = new Set<string>();
  /** The objects that the plan creates, by {@link TerraformResource.objectKeys}. */
  readonly #created = new Set<string>();
  /** The number of new resources so far, which have no state. */
  #newCount = 0;

  /** Returns the name of a resource for errors about two resources with one object. */
  nameOf({ typeName }: TerraformResource, prior: Row | undefined): string {
    if (prior) return `::${typeName}::${idIn(prior)}`;
    this.#newCount += 1;
    return `::${typeName}::new ${this.#newCount}`;
  }

  /**
   * Records an object that the plan keeps.
   * @returns the error if another resource in the state has the same object
   */
  keeps(resource: TerraformResource, prior: Row): Diagnostic | undefined {
    const object = objectOf(resource, prior);
    const isTaken = this.#staying.has(object) || this.#deleted.has(object);
    this.#staying.add(object);
    return isTaken ? alreadyManaged(object) : undefined;
  }

  /**
   * Records an object that the plan deletes.
   * @returns the error if another resource has or declares the same object
   */
  deletes(resource: TerraformResource, prior: Row): Diagnostic | undefined {
    const object = objectOf(resource, prior);
    const keys = resource.objectKeys(prior);
    for (const key of [object, ...keys]) this.#deleted.add(key);
    if (this.#staying.has(object)) return alreadyManaged(object);
    return keys.some((key) => this.#created.has(key)) ? notMoved(object) : undefined;
  }

  /**
   * Records an object that the plan creates.
   * @returns the error if the plan deletes the same object
   */
  creates(resource: TerraformResource, planned: Row): Diagnostic | undefined {
    const keys = resource.objectKeys(planned);
    for (const key of keys) this.#created.add(key);
    return keys.some((key) => this.#deleted.has(key)) ? notMoved(`the ${resource.typeName}`) : undefined;
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
