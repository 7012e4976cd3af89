import { createHash, randomUUID } from "node:crypto";
import { Claims } from "../resources/claims.ts";
import type { Existing, Origin, ResourceDefinition } from "../resources/definition.ts";

type Values = Readonly<Record<string, unknown>>;

/** Who makes an object. */
export interface Creator {
  /** The resource's logical id. */
  readonly resource: string | undefined;
  /** The id of the state that it is in. */
  readonly state: string | undefined;
}

/**
 * What this process, which serves one run, learns of it from checks and diffs. Neither may ask the service, so
 * all of it comes from the program and the state.
 */
export class Run {
  readonly #claims = new Claims();
  /** By logical id: the inputs that the state holds, and the object as far as it was shown here. */
  readonly #inState = new Map<string, { readonly inputs: Values; readonly existing?: Existing<Values> }>();

  /**
   * @param before the inputs in the state; undefined without any
   * @throws TwinError when another resource of the program means the same object
   */
  checked(
    definition: ResourceDefinition,
    resource: string | undefined,
    inputs: Values,
    before: Values | undefined,
  ): void {
    if (!resource) return;
    if (before && !this.#inState.has(resource)) this.#inState.set(resource, { inputs: before });
    // Engines check once more, without what was, when they are about to replace an object for reasons of their own.
    if (!before) this.#claims.letGo(resource);
    this.#claims.declare(definition, resource, inputs);
  }

  /**
   * The object stays this resource's, unless it is replaced.
   * @throws TwinError when another resource of the program has this object
   */
  compared(
    definition: ResourceDefinition,
    resource: string | undefined,
    existing: Existing<Values>,
    isReplaced: boolean,
  ): void {
    if (!resource) return;
    this.#inState.set(resource, { inputs: existing.state, existing });
    this.#claims.letGo(resource);
    if (isReplaced) return;
    this.#claims.hold(definition, resource, existing.id);
    this.#claims.keep(definition, resource, existing.state);
  }

  /** Notes what a resource has after its create. */
  created(definition: ResourceDefinition, resource: string | undefined, made: Existing<Values>): void {
    this.#claims.keep(definition, resource ?? made.id, made.state);
  }

  /** Where the create of this resource comes from. */
  origin(definition: ResourceDefinition, { resource, state }: Creator, inputs: Values): Origin {
    const before = resource === undefined ? undefined : this.#inState.get(resource);
    if (resource) this.#claims.letGo(resource);
    const isSeen = before === undefined || before.existing !== undefined;
    const start =
      resource && state && isSeen
        ? [state, ...creation(definition, resource, inputs, before?.existing)]
        : undefined;
    const replaced = before?.existing;
    return this.#origin(
      definition,
      resource,
      { replaced, unseen: isSeen ? undefined : before.inputs },
      start,
    );
  }

  #origin(
    definition: ResourceDefinition,
    resource: string | undefined,
    before: Pick<Origin, "replaced" | "unseen">,
    creation: readonly string[] | undefined,
  ): Origin {
    const claims = this.#claims;
    return {
      name: resource?.split("::").at(-1) ?? definition.name,
      // Where no later run could say the same, it holds for this one alone.
      idempotencyKey: creation ? digestOf(creation) : randomUUID(),
      ...before,
      claim: (id) => claims.hold(definition, resource ?? `::${definition.name}::${id}`, id),
      isOthers: (id) => claims.isHeld(definition, id, resource),
      after: (id) => this.#origin(definition, resource, before, creation && [...creation, id]),
    };
  }

  /**
   * True when a resource of the program has the object of this id, so that it must outlive another that had it:
   * names move from one object to another, and an engine deletes only after it made and changed all else.
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
 * What is the same for every try to make one object from one state. What it is, as far as inputs say, and what it
 * replaces are part of it: else the service would answer the new object's creation with the old object. Its time as
 * well, because API keys that follow each other may have one name, and so one id.
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
