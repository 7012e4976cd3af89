import type { Readable } from "node:stream";
import type { Declaration, ObjectKind, Operation } from "@gatehouse-access/sdk/contract";
import type { FastifyBaseLogger } from "fastify";
import type { z } from "zod";
import type { Services, SqlServices } from "../services.ts";
import type { Caller, IdentityOf, Member } from "./access/identity.ts";
import type { RequestFacts } from "./listener/requestFacts.ts";
import type { Conversation, WebSocketHandler } from "./listener/webSockets.ts";

/** The type of an operation's validated body. */
export type BodyOf<O extends Operation> = O["body"] extends z.ZodType ? z.output<O["body"]> : undefined;
type ResultOf<O extends Operation> = O["success"]["body"] extends z.ZodType
  ? z.input<O["success"]["body"]> | (true extends O["success"]["mayBeEmpty"] ? undefined : never)
  : undefined;

/** By its parts instead of by its operation, so that operations of the same form can share a handler. */
interface RequestContext<Params, Query, Body, Identity> {
  readonly services: Services;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly identity: Identity;
  readonly request: RequestFacts;
  /** Digest of the request's Idempotency-Key; null without one, and for an operation that does not take it. */
  readonly creationKey: string | null;
  /** The resource of a program that the request says it is of: a hint, by which nothing may be decided. */
  readonly declaration: Declaration | null;
  /** To be called when an earlier request with the same key made the object. */
  repeated(): void;
  /** Aborted when the caller hangs up. */
  readonly signal: AbortSignal;
  readonly log: FastifyBaseLogger;
  /** Sets a response header. */
  header(name: string, value: string | number): void;
}

/** The input of a handler; every value is validated against the contract. */
export type Context<O extends Operation> = RequestContext<
  z.output<O["params"]>,
  z.output<O["query"]>,
  BodyOf<O>,
  IdentityOf<O>
>;

/**
 * Behavior of an operation: its result becomes the response's body, an error the error response. A body too long for
 * memory is a stream of text with its `Content-Type` set; for a WebSocket, the result is what happens over it.
 */
export type Handler<O extends Operation> = (
  context: Context<O>,
) => Promise<ResultOf<O> | Readable | Conversation | WebSocketHandler>;

/** The input of an {@link ObjectWrite}. */
export type WriteContext<O extends Operation, Row = unknown> = Omit<Context<O>, "services"> & {
  readonly services: SqlServices;
  /** The row of the object before the operation, as its kind finds it; null where there is none. */
  readonly found: Row | null;
  /**
   * Takes the object's declared fields after the operation, null once it is deleted. They are then not read again.
   * @param id of the object, where it is to be looked up otherwise
   */
  became(declared: Readonly<Record<string, unknown>> | null, id?: string): void;
};

/**
 * Behavior of an operation that changes an object which people declare. Its statements are SQL alone, which costs a
 * fifth of the same work by Prisma's client. It shares its transaction and its COMMIT with others, so it must wait for
 * its own statements only, and it may run twice.
 */
export type ObjectWrite<O extends Operation, Row = unknown> = (
  context: WriteContext<O, Row>,
) => Promise<ResultOf<O>>;

/** The behavior of an operation. */
type BehaviorOf<O extends Operation> = O["object"] extends ObjectKind
  ? O["method"] extends "GET"
    ? Handler<O>
    : ObjectWrite<O, never>
  : Handler<O>;
/** Operations by their ids. */
export type Operations = Readonly<Record<string, Operation>>;
/** The behavior of each operation; a missing one is a type error. */
export type Handlers<T> = { readonly [Id in keyof T]: T[Id] extends Operation ? BehaviorOf<T[Id]> : never };

/** A request that changes a declared object. */
export interface ObjectRequest {
  readonly operation: Operation & { readonly object: ObjectKind };
  /** Who sends the request, and for which namespace; what the sender may do, the transaction asks anew. */
  readonly sender: Caller | Member;
  readonly params: object;
  readonly body: object | undefined;
  readonly ifMatch: string | undefined;
  readonly creationKey: string | null;
  readonly declaration: Declaration | null;
  readonly facts: Pick<RequestFacts, "id" | "address">;
  /** Authenticates and authorizes the caller, as of the transaction. */
  identify(services: SqlServices): Promise<Caller | Member>;
  /** Runs the operation in the transaction of its write. */
  run(services: SqlServices, identity: Caller | Member, report: WriteReport): Promise<unknown>;
}

/** The parts of a write's context that `writeObject` provides. */
type WriteReport = Pick<WriteContext<Operation>, "found" | "repeated" | "became">;

/** The result of a write, and the object's revision after it (undefined if it was deleted). */
export interface Written {
  readonly result: unknown;
  readonly revision: string | undefined;
}

/** The behavior of operations, which the features implement and the routes are given. */
export interface Behavior {
  /** A handler for each operation, under its id. */
  readonly handlers: object;
  /**
   * Called before an operation runs.
   * @throws PaymentError billing refuses the operation
   * @throws PaymentGatewayError the payment gateway failed
   */
  checkBilling(operation: string, context: Context<Operation>): Promise<void>;
  /** Runs a write of an object as one transaction. */
  write(services: Services, request: ObjectRequest): Promise<Written>;
}
