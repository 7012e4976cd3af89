import type { z } from "zod";
import type { Camelised, CamelisedInput } from "./case.ts";
import type { Operations } from "./contract/index.ts";
import type { Filter } from "./filter.ts";

/** Id of a public operation; also the name of the client's method. */
export type OperationId = keyof Operations;

/** What a caller gives for a schema of the contract; undefined for an object without fields. */
type InputOf<S> =
  S extends z.ZodObject<infer Shape>
    ? [keyof Shape] extends [never]
      ? undefined
      : CamelisedInput<z.input<S>>
    : S extends z.ZodType
      ? CamelisedInput<z.input<S>>
      : undefined;

/** A query, whose filter may also be given as `where()` makes it. */
type QueryOf<Q> = Q extends undefined
  ? undefined
  : { [K in keyof Q]: K extends "filter" ? Q[K] | Filter : Q[K] };

/** One part of a request: none where it has no fields, optional where all its fields are. */
type Part<Name extends string, Value> = [Value] extends [undefined]
  ? unknown
  : Record<never, never> extends Value
    ? { readonly [K in Name]?: Value }
    : { readonly [K in Name]: Value };

type Flat<T> = { [K in keyof T]: T[K] };

/** What a call of an operation takes: `params` (of the path), `query` and `body`, each where it has one. */
export type RequestOf<Id extends OperationId> = Flat<
  Part<"params", InputOf<Operations[Id]["params"]>> &
    Part<"query", QueryOf<InputOf<Operations[Id]["query"]>>> &
    Part<"body", InputOf<Operations[Id]["body"]>>
>;

/** Operations whose answer has no body in a case (`mayBeEmpty` in the contract). */
export type EmptyableId = "leaveNamespace" | "registerUser";

/** Body of an operation's answer, in camelCase; undefined where it has none. */
export type ResponseOf<Id extends OperationId> =
  | (Operations[Id]["success"]["body"] extends z.ZodType
      ? Camelised<z.output<Operations[Id]["success"]["body"]>>
      : undefined)
  | (Id extends EmptyableId ? undefined : never);

/** Operations that list something in pages. */
export type ListId = {
  [Id in OperationId]: Operations[Id]["query"]["shape"] extends { page: z.ZodType } ? Id : never;
}[OperationId];

/** One item of a list. */
export type ItemOf<Id extends ListId> = ResponseOf<Id> extends readonly (infer Item)[] ? Item : never;

/** The arguments of a call; the request may be left out where nothing in it is required. */
export type RequestArguments<Id extends OperationId, Options> =
  Record<never, never> extends RequestOf<Id>
    ? [request?: RequestOf<Id>, options?: Options]
    : [request: RequestOf<Id>, options?: Options];
