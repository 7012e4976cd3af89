import { createHash, randomUUID } from "node:crypto";
import type { Declaration } from "@gatehouse-access/sdk";
import type { Existing, Origin, ResourceDefinition } from "../model/definition.ts";
import { UrnPatterns, urnName, urnScope } from "../urn.ts";
import type { Values } from "../values.ts";
import { Claims } from "./claims.ts";

/**
 * The separator in a declaration between a resource's name and the mark of one of its instances. See {@link
 * markedResource}.
 */
const MARK = "#";

/**
 * Returns the name of a resource for declarations, followed by a mark, that is, a string that identifies one instance
 * of the resource. Marks are used with engines that pass no resource names. If a deletion finds a different mark on the
 * object, it leaves the object, because a different instance has adopted it.
 */
export const markedResource = (resource: string, mark: string | undefined): string =>
  mark === undefined ? resource : resource + MARK + mark;

/**
 * Returns the mark in the result of {@link markedResource}. Returns undefined if the name has no mark, or is the name
 * of a different resource.
 */
export const markIn = (declared: string, resource: string): string | undefined =>
  declared.startsWith(resource + MARK) ? declared.slice((resource + MARK).length) : undefined;

/** The resource that creates an object, and the data that the engine passes to the create operation. */
export interface Creator {
  /** The URN of the resource. */
  readonly resource: string | undefined;
  /** The id of the state that contains the resource. */
  readonly state: string | undefined;
  /** Names of inputs whose values must not appear in errors, if the engine provides them. */
  readonly secretInputs?: readonly string[];
  /** Output values that the program chose, such as the secret of an API key. */
  readonly chosen?: Values;
  /** The object that the new object replaces. Defined only with engines that pass no resource name. */
  readonly replaced?: Existing<Values>;
  /**
   * Returns true if the new resource inherits the object with this id from a replaced resource. Inheritance does not
   * require `adopt`. Defined only with engines that create the new resource before they delete the replaced resource.
   */
  readonly inherits?: ((id: string) => boolean) | undefined;
  /** The mark in the declaration of an adopted or inherited object. See {@link markedResource}. */
  readonly mark?: string | undefined;
}

/**
 * The data that this process collects during its run. All data comes from the program and the state, because checks and
 * diffs must not send requests. Resources are identified by their URNs.
 */
export class RunRecord {
  readonly #claims = new Claims();
  /**
   * The resources that the program declares. The engine calls a check only for these resources. During a refresh, the
   * engine also calls a diff for resources that are only in the state.
   */
  readonly #checked = new Set<string>();
  #creations = 0;
  /** The notices that the run has already reported. */
  readonly #reported = new Set<string>();
  /**
   * The inputs in the state, by resource. `existing` is the complete object in the state, which engines pass only to a
   * diff.
   */
  readonly #inState = new Map<string, { readonly inputs: Values; readonly existing?: Existing<Values> }>();

  /**
   * Records a check.
   * @param before the inputs in the state; undefined if the resource is not in the state
   * @throws DuplicateDeclarationError if a different resource of the program declares the same object
   */
  checked(
    definition: ResourceDefinition,
    resource: string | undefined,
    inputs: Values,
    before: Values | undefined,
  ): void {
    if (!resource) return;
    this.#checked.add(resource);
    if (before && !this.#inState.has(resource)) this.#inState.set(resource, { inputs: before });
    // Before a replacement, engines check a resource again, but do not pass the inputs in the state.
    if (!before) this.#claims.releaseObject(resource);
    this.#claims.declare(definition, resource, inputs);
  }

  /** Returns true if the program declares the resource. */
  isDeclared(resource: string | undefined): resource is string {
    return resource !== undefined && this.#checked.has(resource);
  }

  /** Returns true for the first call with a string, so that a run reports each notice only once. */
  isFirst(text: string): boolean {
    const { size } = this.#reported;
    return this.#reported.add(text).size > size;
  }

  /**
   * Records a diff. The resource keeps the claims on its object unless the object is replaced. Resources that are only
   * in the state have no claims, because the engine may delete them next.
   * @throws DuplicateDeclarationError if a different resource of the program has claimed this object
   */
  compared(
    definition: ResourceDefinition,
    resource: string | undefined,
    existing: Existing<Values>,
    isReplaced: boolean,
  ): void {
    if (!resource) return;
    this.#inState.set(resource, { inputs: existing.state, existing });
    if (!this.#checked.has(resource)) return;
    this.#claims.releaseObject(resource);
    if (isReplaced) return;
    this.#claims.hold(definition, resource, existing.id);
    this.#claims.keep(definition, resource, existing.state);
  }

  /** Records a create. */
  created(definition: ResourceDefinition, resource: string | undefined, object: Existing<Values>): void {
    this.#claims.keep(definition, resource ?? object.id, object.state);
  }

  /** Returns the data, in addition to the inputs, that the create operation of a resource needs. */
  origin(definition: ResourceDefinition, creator: Creator, inputs: Values): Origin {
    const { resource, state, chosen = {} } = creator;
    const before = resource === undefined ? undefined : this.#inState.get(resource);
    if (resource) this.#claims.releaseObject(resource);
    const isKnown = before === undefined || before.existing !== undefined;
    const start =
      resource && state && isKnown
        ? [state, ...creation(definition, resource, inputs, before?.existing)]
        : undefined;
    const replaced = creator.replaced ?? before?.existing;
    const unseen = isKnown ? undefined : before.inputs;
    const name = resource?.split("::").at(-1) ?? definition.name;
    this.#creations += 1;
    const owner = resource ?? `::${definition.name}::creation ${this.#creations}`;
    const isNamed = resource !== undefined;
    return this.#origin(definition, owner, { name, isNamed, replaced, unseen, chosen }, start);
  }

  #origin(
    definition: ResourceDefinition,
    owner: string,
    before: Pick<Origin, "name" | "isNamed" | "replaced" | "unseen" | "chosen">,
    creation: readonly string[] | undefined,
  ): Origin {
    const claims = this.#claims;
    return {
      // If later runs cannot compute the same idempotency key, this run uses a random key that is never used again.
      idempotencyKey: creation ? digestOf(creation) : randomUUID(),
      ...before,
      claim: (id) => claims.hold(definition, owner, id),
      isOthers: (id) => claims.isHeld(definition, id, owner),
      after: (id) => this.#origin(definition, owner, before, creation && [...creation, id]),
    };
  }

  /**
   * Returns true if a resource of the program has claimed the object with this id. An object can move from one resource
   * to a different one. The engine deletes the old resource last, and this deletion must not delete the object.
   */
  isHeld(definition: ResourceDefinition, id: string): boolean {
    return this.#claims.isHeld(definition, id);
  }

  /** Returns true if a resource of the program has an exclusive claim with this key. */
  isClaimed(key: string): boolean {
    return this.#claims.isHeldAlone(key);
  }
}

/**
 * Returns the values that determine the idempotency key of a create. All attempts to create one object from one state
 * have the same values. Each new object needs a new key, because the service would return the old object for the same
 * key. So the values include the identity of the new object and the id of the replaced object. Successive API keys can
 * have the same id, so the values also include the time when the replaced object was created.
 */
function creation(
  { identity }: ResourceDefinition,
  resource: string,
  inputs: Values,
  replaced: Existing<Values> | undefined,
): string[] {
  const object = identity?.ofInputs(inputs).map((claim) => claim.key) ?? [];
  return [resource, ...object, replaced?.id ?? "", String(replaced?.state.createdAt ?? "")];
}

const digestOf = (parts: readonly string[]) => createHash("sha256").update(parts.join("\n")).digest("hex");

/**
 * Returns the part of the {@link Runtime} that dynamic resources and the plugin share. Both of them identify resources
 * by URNs.
 */
export const pulumiRun = (env: NodeJS.ProcessEnv = process.env) => ({
  run: new RunRecord(),
  declaration: (_: unknown, urn: string | undefined): Declaration | undefined =>
    urn === undefined ? undefined : { ...urnScope(urn), resource: urnName(urn) },
  isReplacementRequested: requestedReplacements(env),
});

/**
 * Returns a function that checks a URN: it returns true if a `gatehouse` command requested the replacement of the
 * resource. An environment variable contains the requested URNs, because engines do not pass them to providers.
 */
function requestedReplacements(env: NodeJS.ProcessEnv): (urn: string) => boolean {
  let requested: UrnPatterns | undefined;
  return (urn) => {
    requested ??= new UrnPatterns(JSON.parse(env.GATEHOUSE_REPLACE ?? "[]") as string[]);
    return requested.has(urn);
  };
}
