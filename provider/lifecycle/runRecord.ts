import { createHash, randomUUID } from "node:crypto";
import type { Declaration } from "@gatehouse-access/sdk";
import type { Existing, Origin, ResourceDefinition } from "../resources/definition.ts";
import { UrnPatterns, urnName, urnScope } from "../urn.ts";
import { Claims } from "./claims.ts";

type Values = Readonly<Record<string, unknown>>;

/** The resource that makes an object. */
export interface Creator {
  /** Its URN. */
  readonly resource: string | undefined;
  /** The id of the state that it is in. */
  readonly state: string | undefined;
  /** Names of inputs whose values no error may show, where the engine tells. */
  readonly secretInputs?: readonly string[];
  /** Values of outputs that the program chose itself. */
  readonly chosen?: Values;
  /** The object that is replaced, where the engine names no resource but shows it. */
  readonly replaced?: Existing<Values>;
}

/**
 * What this process learns of the run that it serves. Checks and diffs may not ask the service, so all of it comes from
 * the program and the state. Resources are named by their URNs.
 */
export class RunRecord {
  readonly #claims = new Claims();
  /** The resources of the program: those that were checked. A refresh compares others too, which are only in the state. */
  readonly #checked = new Set<string>();
  #creations = 0;
  /** By resource: the inputs that the state holds, and the object if the engine showed it. */
  readonly #inState = new Map<string, { readonly inputs: Values; readonly existing?: Existing<Values> }>();

  /**
   * Takes note of a check.
   * @param before the inputs in the state; undefined where the resource is not in it
   * @throws DuplicateDeclarationError when another resource of the program declares the same object
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
    // Before a replacement engines check once more, without the inputs in the state.
    if (!before) this.#claims.letGo(resource);
    this.#claims.declare(definition, resource, inputs);
  }

  /**
   * Takes note of a diff: the object stays the resource's, unless it is replaced. What is only in the state claims
   * nothing, as it may be deleted next.
   * @throws DuplicateDeclarationError when another resource of the program has this object
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
    this.#claims.letGo(resource);
    if (isReplaced) return;
    this.#claims.hold(definition, resource, existing.id);
    this.#claims.keep(definition, resource, existing.state);
  }

  /** Takes note of a create. */
  created(definition: ResourceDefinition, resource: string | undefined, made: Existing<Values>): void {
    this.#claims.keep(definition, resource ?? made.id, made.state);
  }

  /** What the create of a resource must know beside its inputs. */
  origin(definition: ResourceDefinition, creator: Creator, inputs: Values): Origin {
    const { resource, state, chosen = {} } = creator;
    const before = resource === undefined ? undefined : this.#inState.get(resource);
    if (resource) this.#claims.letGo(resource);
    const isSeen = before === undefined || before.existing !== undefined;
    const start =
      resource && state && isSeen
        ? [state, ...creation(definition, resource, inputs, before?.existing)]
        : undefined;
    const replaced = creator.replaced ?? before?.existing;
    const unseen = isSeen ? undefined : before.inputs;
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
      // Without anything that a later run would know too, the key is for this run alone.
      idempotencyKey: creation ? digestOf(creation) : randomUUID(),
      ...before,
      claim: (id) => claims.hold(definition, owner, id),
      isOthers: (id) => claims.isHeld(definition, id, owner),
      after: (id) => this.#origin(definition, owner, before, creation && [...creation, id]),
    };
  }

  /**
   * True when a resource of the program has the object of this id, so that it must not be deleted for another resource
   * that had it before: objects may pass from one resource to another, and engines delete after all else is done.
   */
  isHeld(definition: ResourceDefinition, id: string): boolean {
    return this.#claims.isHeld(definition, id);
  }

  /** True when a resource of the program claims this key for itself alone. */
  isClaimed(key: string): boolean {
    return this.#claims.isHeldAlone(key);
  }
}

/**
 * What is the same for every try to make one object from one state. The object's identity and the id of the object that
 * it replaces are part of it: otherwise the service would answer the creation of the new object with the old one. So is
 * the old object's time of creation, because API keys that follow each other may have the same name, and so the same
 * id.
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

/** The part of a lifecycle's runtime that the two Pulumi front ends share: resources have URNs. */
export const pulumiRun = (env: NodeJS.ProcessEnv = process.env) => ({
  run: new RunRecord(),
  declaration: (_: unknown, urn: string | undefined): Declaration | undefined =>
    urn === undefined ? undefined : { ...urnScope(urn), resource: urnName(urn) },
  isReplacementAsked: replacementsAsked(env),
});

/** The resources that `gatehouse` replaces on request: its environment names them, since no engine tells a provider. */
function replacementsAsked(env: NodeJS.ProcessEnv): (urn: string) => boolean {
  let asked: UrnPatterns | undefined;
  return (urn) => {
    asked ??= new UrnPatterns(JSON.parse(env.GATEHOUSE_REPLACE ?? "[]") as string[]);
    return asked.has(urn);
  };
}
