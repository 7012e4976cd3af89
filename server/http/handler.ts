import type { Readable } from "node:stream";
import type { ObjectKind, Operation } from "@gatehouse-access/sdk/contract";
import type { FastifyBaseLogger } from "fastify";
import type { z } from "zod";
import type { Services } from "../services.ts";
import type { Caller, IdentityOf, Member } from "./identity.ts";
import type { RequestFacts } from "./requestFacts.ts";
import type { Conversation } from "./webSockets.ts";

export type BodyOf<O extends Operation> = O["body"] extends z.ZodType ? z.output<O["body"]> : undefined;
type ResultOf<O extends Operation> = O["success"]["body"] extends z.ZodType
  ? z.input<O["success"]["body"]> | (true extends O["success"]["mayBeEmpty"] ? undefined : never)
  : undefined;

interface RequestContext<Params, Query, Body, Identity> {
  readonly services: Services;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly identity: Identity;
  readonly request: RequestFacts;
  /** Digest of the request's Idempotency-Key, for operations that take it; null without one. */
  readonly creationKey: string | null;
  /** To be called when the object was made by an earlier request with the same key. */
  repeated(): void;
  /** Aborted when the caller hangs up. */
  readonly signal: AbortSignal;
  readonly log: FastifyBaseLogger;
  /** Sets a response header. */
  header(name: string, value: string | number): void;
}

/** What a handler works with; every value is checked against the contract. */
export type Context<O extends Operation> = RequestContext<
  z.output<O["params"]>,
  z.output<O["query"]>,
  BodyOf<O>,
  IdentityOf<O>
>;

/**
 * Behaviour of an operation: its result becomes the response's body, an error its refusal. A body that may be too long
 * to hold is a stream of its text, with its `Content-Type` set; where success is a WebSocket, the conversation over it.
 */
export type Handler<O extends Operation> = (
  context: RequestContext<z.output<O["params"]>, z.output<O["query"]>, BodyOf<O>, IdentityOf<O>>,
) => Promise<ResultOf<O> | Readable | Conversation>;
export type Operations = Readonly<Record<string, Operation>>;
/** One handler for each operation; a missing one is a type error. */
export type Handlers<T> = { readonly [Id in keyof T]: T[Id] extends Operation ? Handler<T[Id]> : never };

/** A request that changes an object which people declare. */
export interface ObjectRequest {
  readonly operation: Operation & { readonly object: ObjectKind };
  /** Undefined for one that makes a namespace. */
  readonly tenantId: string | undefined;
  readonly params: object;
  readonly body: object | undefined;
  readonly ifMatch: string | undefined;
  readonly creationKey: string | null;
  readonly facts: Pick<RequestFacts, "id" | "address">;
  /** Who calls, and what the caller may do at this moment, as the transaction sees it. */
  identify(services: Services): Promise<Caller | Member>;
  /** The operation itself; it calls `repeated` when it answers with what an earlier request made. */
  run(services: Services, identity: Caller | Member, repeated: () => void): Promise<unknown>;
}

/** What a write answers, and the object's revision after it; undefined when it is gone. */
export interface Written {
  readonly result: unknown;
  readonly revision: string | undefined;
}

/** What operations do: the features have it, and the routes are given it. */
export interface Behaviour {
  /** A handler for each operation, under its id. */
  readonly handlers: object;
  /** Asked before an operation runs; throws to refuse it. */
  admit(operation: string, context: Context<Operation>): Promise<void>;
  /** Runs a write of an object as one transaction. */
  write(services: Services, request: ObjectRequest): Promise<Written>;
}
