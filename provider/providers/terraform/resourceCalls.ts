import { printedError } from "@gatehouse-access/sdk/errors";
import { type Notice, ResourceLifecycle, type Runtime } from "../../lifecycle/lifecycle.ts";
import { RunRecord } from "../../lifecycle/runRecord.ts";
import { objectMeant } from "../../lifecycle/selectObject.ts";
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
import { idIn, TerraformResource } from "./resource.ts";
import { decodedRow, encoded, parsed, rowIn, type WireValue } from "./wireValues.ts";

/** A call about a resource, or another thing with a type. */
export interface OfType {
  readonly typeName: string;
}

/** A call with what a configuration says. */
export interface WithConfig extends OfType {
  readonly config?: WireValue;
}

/** A state as it was written. */
export interface RawState {
  readonly json?: Uint8Array;
}

/** An answer to Terraform. */
interface Answer {
  readonly [field: string]: unknown;
  readonly diagnostics?: readonly Diagnostic[];
}

/** All kinds of resources, by their types in Terraform. */
export const resources: ReadonlyMap<string, TerraformResource> = new Map(
  definitions.map((definition) => {
    const resource = new TerraformResource(definition);
    return [resource.typeName, resource];
  }),
);

/** Work whose failure is told to whoever runs Terraform. */
export async function saying(summary: string, work: () => object | Promise<object>): Promise<object> {
  try {
    return await work();
  } catch (error) {
    return { diagnostics: [errorAt([], summary, printedError(error))] };
  }
}

/** The calls about resources within one command of Terraform, for one provider block. */
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
      isReplacementAsked: () => false,
      connection: () => configuration.service(),
      tell: (notice) => configuration.notices.getStore()?.push(notice),
    };
    this.#lifecycles = new Map(
      [...resources].map(([type, { definition }]) => [type, new ResourceLifecycle(definition, runtime)]),
    );
  }

  /**
   * What runs is done to its end, so that no object is made whose id nobody keeps, but does not wait for the service;
   * nothing else is begun.
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
        ({ role, name }) => !isAllowed && role === "secret" && config[name] !== null,
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
      const detail = `a ${sourceTypeName} of ${sourceProviderAddress} is no ${typeName}; remove it from the state by a removed block, and import it as what it is to be`;
      return { diagnostics: [errorAt([], "Unsupported move", detail)] };
    });
  }

  import(request: OfType & { readonly id: string }): Promise<object> {
    return this.#answer(request, async (resource) => {
      try {
        const { id } = await objectMeant(resource.definition, this.#configuration.service(), request.id);
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
        const detail = `${resource.typeName} ${idIn(current)} stays as the state has it: a part of the provider configuration is not known before apply`;
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
    return this.#answer(request, (resource, lifecycle) => {
      const prior = decodedRow(request.priorState);
      if (!decodedRow(request.proposedNewState)) {
        const moved = prior && this.#objects.goes(resource, prior);
        return { plannedState: encoded(null), diagnostics: moved ? [moved] : [] };
      }
      const twin = prior && this.#objects.stays(resource, prior);
      if (twin) return { diagnostics: [twin] };
      const replaced = prior ? undefined : replacedIn(request.priorPrivate);
      const name = replaced ?? this.#objects.nameOf(resource, prior);
      const { planned, replaces, errors } = resource.plan(lifecycle, name, rowIn(request.config), prior);
      const moved = prior ? undefined : this.#objects.comes(resource, planned);
      return {
        plannedState: encoded(planned),
        requiresReplace: replaces.map((attribute) => attributePath(attribute)),
        // Where the object is replaced, also because somebody said so, the create that takes its place is asked about
        // next, and has no state.
        ...(prior && { plannedPrivate: Buffer.from(JSON.stringify({ replaces: name })) }),
        diagnostics: moved ? [...errors, moved] : errors,
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
      const step = !prior ? "made" : planned ? "changed" : "removed";
      const failed = (error: unknown, state = prior, what = `could not be ${step}`) => ({
        newState: encoded(state),
        diagnostics: [errorDiagnostic(resource.definition, error, what, resource.secretsIn(config))],
      });
      if (this.#isStopped) return failed(new Error("not begun: the run was cancelled"));
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
        if (error.wasThere)
          return failed(error, prior, `is there already (${error.id}), and could not be changed`);
        // Terraform makes it anew: of a create that failed, it takes nothing for finished.
        return failed(error, resource.row(error, planned), "was made, but not completed");
      } finally {
        this.#configuration.written();
      }
    });
  }

  /** Answers for a resource; what goes wrong beside its lifecycle is said as well. */
  #answer(
    { typeName }: OfType,
    work: (resource: TerraformResource, lifecycle: ResourceLifecycle) => Answer | Promise<Answer>,
  ): Promise<object> {
    return saying(`${typeName} failed`, async () => {
      const resource = resources.get(typeName);
      const lifecycle = this.#lifecycles.get(typeName);
      if (!resource || !lifecycle) throw new Error(`${typeName}: is no resource of this provider`);
      const notices: Notice[] = [];
      const answer = await this.#configuration.notices.run(notices, () => work(resource, lifecycle));
      if (notices.length === 0) return answer;
      const warnings = notices.map((notice) => noticeDiagnostic(resource.definition, notice));
      return { ...answer, diagnostics: [...(answer.diagnostics ?? []), ...warnings] };
    });
  }
}

/** The name of the resource whose object is replaced; undefined where none is. */
const replacedIn = (marked: Uint8Array | undefined): string | undefined =>
  marked?.length ? (parsed(marked) as { readonly replaces?: string }).replaces : undefined;

const NOT_COMPLETED = "was made anew, but not completed; the next apply goes on";

const OLD_ONE_LEFT = "was made anew, but the old one could not be removed; the next apply tries again";

const needsNewerTerraform = (name: string): Diagnostic =>
  errorAt(
    [name],
    `${name} needs a newer version`,
    `${name} is a write-only attribute: it needs ${versionText("writeOnly")}`,
  );

const upgraded = (resource: TerraformResource, raw: RawState | undefined): Row =>
  resource.upgraded((raw?.json?.length ? parsed(raw.json) : {}) as Row);

/**
 * The objects that one plan is about. Terraform tells a provider no address of a resource, and removes and makes objects in
 * any order: of two resources with one object, each would lose what the other one does.
 */
class PlannedObjects {
  /** Types and ids of what is in the state and stays. */
  readonly #staying = new Set<string>();
  /** What the plan removes, by type and id and by {@link TerraformResource.objectKeys}. */
  readonly #going = new Set<string>();
  /** What the plan makes, by {@link TerraformResource.objectKeys}. */
  readonly #coming = new Set<string>();
  /** How many resources have no state yet. */
  #made = 0;

  /** What a resource is called in errors about two that have one object. */
  nameOf({ typeName }: TerraformResource, prior: Row | undefined): string {
    if (prior) return `::${typeName}::${idIn(prior)}`;
    this.#made += 1;
    return `::${typeName}::new ${this.#made}`;
  }

  /** Takes note of an object that stays. @returns the error where another resource of the state has it too */
  stays(resource: TerraformResource, prior: Row): Diagnostic | undefined {
    const object = objectOf(resource, prior);
    const isTaken = this.#staying.has(object) || this.#going.has(object);
    this.#staying.add(object);
    return isTaken ? alreadyManaged(object) : undefined;
  }

  /** Takes note of an object that is removed. @returns the error where another resource has it, or declares it */
  goes(resource: TerraformResource, prior: Row): Diagnostic | undefined {
    const object = objectOf(resource, prior);
    const keys = resource.objectKeys(prior);
    for (const key of [object, ...keys]) this.#going.add(key);
    if (this.#staying.has(object)) return alreadyManaged(object);
    return keys.some((key) => this.#coming.has(key)) ? notMoved(object) : undefined;
  }

  /** Takes note of an object that is made. @returns the error where it is the one that the plan removes */
  comes(resource: TerraformResource, planned: Row): Diagnostic | undefined {
    const keys = resource.objectKeys(planned);
    for (const key of keys) this.#coming.add(key);
    return keys.some((key) => this.#going.has(key)) ? notMoved(`the ${resource.typeName}`) : undefined;
  }
}

const objectOf = ({ typeName }: TerraformResource, prior: Row): string => `${typeName} ${idIn(prior)}`;

const alreadyManaged = (object: string): Diagnostic =>
  errorAt(
    [],
    "Two resources with one object",
    `${object} is in the state of another resource of this configuration too; remove one of the two from the state (a removed block with destroy = false, or the command state rm)`,
  );

const notMoved = (object: string): Diagnostic =>
  errorAt(
    [],
    "An object that is removed and declared",
    `${object} is removed by this plan, and another resource declares the same object: say by a moved block that it is that resource's now, or apply the removal first`,
  );
