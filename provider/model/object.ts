import type { Listed, ResourceDefinition } from "./definition.ts";

/** An object of a namespace, with the definition of its resource type: a live object, or an object after a plan. */
export interface LiveObject extends Listed {
  readonly definition: ResourceDefinition;
}

/** The name of a kind of object: the name of its resource type. */
export type KindName = string;

/** The objects of one kind in a namespace, by their key. The key is usually the id without the namespace. */
export type Objects = ReadonlyMap<string, LiveObject>;
