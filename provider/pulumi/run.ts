import { createHash } from "node:crypto";
import { Claims } from "../resources/claims.ts";
import type { Existing, Origin, ResourceDefinition } from "../resources/definition.ts";

type Values = Readonly<Record<string, unknown>>;

/**
 * What this process, which serves one run, learns of it from checks and diffs. Neither may ask the service, so
 * all of it comes from the program and the state.
 */
export class Run {
  readonly #claims = new Claims();
  /** By logical id: what the state holds; null where it holds something that was not shown here. */
  readonly #inState = new Map<string, Existing<Values> | null>();

  /** @throws TwinError when another resource of the program means the same object */
  checked(
    definition: ResourceDefinition,
    resource: string | undefined,
    inputs: Values,
    isNew: boolean,
  ): void {
    if (!resource) return;
    if (!isNew && !this.#inState.has(resource)) this.#inState.set(resource, null);
    // Engines check once more, without what was, when they are about to replace an object for reasons of their own.
    if (isNew) this.#claims.letGo(resource);
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
    this.#inState.set(resource, existing);
    this.#claims.letGo(resource);
    if (!isReplaced) this.#claims.hold(definition, resource, existing.id);
  }

  /** Where the create of this resource comes from. */
  origin(definition: ResourceDefinition, resource: string | undefined): Origin {
    const replaced = resource ? this.#inState.get(resource) : null;
    if (resource) this.#claims.letGo(resource);
    return {
      name: resource?.split("::").at(-1) ?? definition.name,
      idempotencyKey: resource && replaced !== null ? idempotencyKey(resource, replaced) : undefined,
      replaced: replaced ?? undefined,
      claim: (id) => this.#claims.hold(definition, resource ?? `::${definition.name}::${id}`, id),
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
 * The same for every try to make one object. What is replaced is part of it: else the service would answer the
 * new object's creation with the old object. Its time as well, because API keys that follow each other may have
 * one name, and so one id.
 */
function idempotencyKey(resource: string, replaced: Existing<Values> | undefined): string {
  return createHash("sha256")
    .update([resource, replaced?.id ?? "", replaced?.state.createdAt ?? ""].join("\n"))
    .digest("hex");
}
