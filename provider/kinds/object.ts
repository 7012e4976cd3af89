import type { Listed, ResourceDefinition } from "../resources/definition.ts";

/** An object of a namespace, with the definition of its resource type: a live object, or an object after a plan. */
export interface LiveObject extends Listed {
  readonly definition: ResourceDefinition;
}

/** The objects of one kind in a namespace, by their key: usually the id without the namespace. */
export type Objects = ReadonlyMap<string, LiveObject>;
