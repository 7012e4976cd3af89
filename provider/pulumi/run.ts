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
  readonly #takenOver = new Set<string>();

  /** @throws TwinError when another resource of the program means the same object */
  checked(
    definition: ResourceDefinition,
    resource: string | undefined,
    inputs: Values,
    isNew: boolean,
  ): void {
    if (!resource) return;
    if (!isNew && !this.#inState.has(resource)) this.#inState.set(resource, null);
    this.#claims.declare(definition, resource, inputs);
  }

  /** @throws TwinError when another resource of the program has this object */
  compared(definition: ResourceDefinition, resource: string | undefined, existing: Existing<Values>): void {
    if (!resource) return;
    this.#inState.set(resource, existing);
    this.#claims.hold(definition, resource, existing.id);
  }

  /** Where the create of this resource comes from. */
  origin(definition: ResourceDefinition, resource: string | undefined): Origin {
    const replaced = resource ? this.#inState.get(resource) : null;
    return {
      name: resource?.split("::").at(-1) ?? definition.name,
      idempotencyKey: resource && replaced !== null ? idempotencyKey(resource, replaced) : undefined,
      replaced: replaced ?? undefined,
      claim: (id) => resource && this.#claims.hold(definition, resource, id),
    };
  }

  /** Notes that an object that was there before belongs to a resource now. */
  tookOver(definition: ResourceDefinition, id: string): void {
    this.#takenOver.add(`${definition.name} ${id}`);
  }

  /** True when another resource took this object over, so that it must outlive the one that had it. */
  isTakenOver(definition: ResourceDefinition, id: string): boolean {
    return this.#takenOver.has(`${definition.name} ${id}`);
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
