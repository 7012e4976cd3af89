import type { StateResource } from "../engine/index.ts";
import { claimsOfId } from "../lifecycle/claims.ts";
import type { ResourceDefinition } from "../resources/definition.ts";
import { isSameService } from "../service/connection.ts";
import { definitionOf, type LiveObject } from "./liveObjects.ts";

/** A resource of this package in a state. */
export interface OwnResource extends StateResource {
  readonly definition: ResourceDefinition;
}

/**
 * The resources of this package in a state that are on a service: a program may have provider instances for several.
 * @param service its address
 */
export function ownResources(resources: readonly StateResource[], service: string): OwnResource[] {
  const urls = new Map(resources.map(({ urn, id, inputs }) => [`${urn}::${id}`, inputs?.url]));
  return resources.flatMap((resource) => {
    const definition = definitionOf(resource);
    const url = urls.get(resource.provider ?? "");
    const isHere = typeof url !== "string" || isSameService(url, service);
    return definition && isHere ? [{ ...resource, definition }] : [];
  });
}

/** The objects that resources in states manage. */
export class ManagedObjects {
  readonly #owners = new Map<string, string>();

  constructor(resources: Iterable<OwnResource>) {
    for (const { definition, id, urn, outputs = {} } of resources) {
      if (id === undefined) continue;
      const keys = definition.objectKeys?.(outputs) ?? ownKeys(definition, id);
      for (const key of [...keys, ...(definition.keeps?.(outputs) ?? [])]) this.#owners.set(key, urn);
    }
  }

  /** The URN of the resource that manages the object, or the whole that it is part of; undefined for none. */
  ownerOf({ definition, id, state }: LiveObject): string | undefined {
    const keys =
      (state && definition.objectKeys?.(state)) ?? claimsOfId(definition, id).map((claim) => claim.key);
    for (const key of keys) {
      const owner = this.#owners.get(key);
      if (owner !== undefined) return owner;
    }
    return undefined;
  }
}

/** The keys that a resource alone has. What it shares, such as a device's tags, others may have parts of. */
const ownKeys = (definition: ResourceDefinition, id: string): string[] =>
  claimsOfId(definition, id)
    .filter((claim) => !claim.shared)
    .map((claim) => claim.key);
