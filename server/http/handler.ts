import type { Readable } from "node:stream";
import type { Declaration, ObjectKind, Operation } from "@gatehouse-access/sdk/contract";
import type { FastifyBaseLogger } from "fastify";
import type { z } from "zod";
import type { Services, SqlServices } from "../services.ts";
import type { Caller, IdentityOf, Member } from "./access/identity.ts";
import type { ListInPieces } from "./limits/pieces.ts";
import type { RequestFacts } from "./listener/requestFacts.ts";
import type { Conversation, WebSocketHandler } from "./listener/webSockets.ts";

/** The type of an operation's validated body. */
export type BodyOf<O extends Operation> = O["body"] extends z.ZodType ? z.output<O["body"]> : undefined;
type ResultOf<O extends Operation> = O["success"]["body"] extends z.ZodType
  ? z.input<O["success"]["body"]> | (true extends O["success"]["mayBeEmpty"] ? undefined : never)
  : undefined;

/**
 * The input of a handler. The type parameters are the types of the parts of the input, and not the type of the
 * operation. So operations with the same parts can share a handler.
 */
interface RequestContext<Params, Query, Body, Identity> {
  readonly services: Services;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly identity: Identity;
  readonly request: RequestFacts;
  /** Digest of the request's Idempotency-Key. Null if the header is absent or the operation does not accept it. */
  readonly creationKey: string | null;
  /**
   * The program resource that declares the object, according to the request header `Gatehouse-Declared-By`. Null if the
   * header is absent. No decision may depend on this value, because any client can send the header.
   */
  readonly declaration: Declaration | null;
  /** Call this function if an earlier request with the same Idempotency-Key created the object. */
  repeated(): void;
  /** Signal that is aborted when the client disconnects. */
  readonly signal: AbortSignal;
  readonly log: FastifyBaseLogger;
  /** Sets a response header. */
  header(name: string, value: string | number): void;
}

/** The input of a handler. Every value has been validated against the contract. */
export type Context<O extends Operation> = RequestContext<
  z.output<O["params"]>,
  z.output<O["query"]>,
  BodyOf<O>,
  IdentityOf<O>
>;

/**
 * The result of an operation that reads a list in pieces. A piece is a group of items that is read in a separate turn
 * of the event loop.
 */
type PiecesOf<List> = List extends readonly (infer Item)[] ? ListInPieces<Item> : never;

/**
 * The behavior of an operation. The handler's result becomes the response body. An error becomes the error response. If
 * a body is too long for memory, the result is a text stream, and the handler sets `Content-Type`. If the operation
 * opens a WebSocket, the result handles the connection.
 */
export type Handler<O extends Operation> = (
  context: Context<O>,
) => Promise<ResultOf<O> | PiecesOf<ResultOf<O>> | Readable | Conversation | WebSocketHandler>;

/** The input of an {@link ObjectWrite}. */
export type WriteContext<O extends Operation, Row = unknown> = Omit<Context<O>, "services"> & {
  readonly services: SqlServices;
  /**
   * Returns the object's row before the operation, in the form that the lookup of the object's kind returns.
   * @throws NotFoundError the object does not exist
   */
  found(): Row;
  // This is a property and not a method, so that the compiler rejects a handler for rows of a different kind.
  /**
   * Reports the object's row after the operation, or null after a deletion. The service then does not read the row
   * again.
   * @param id the object's id; by default, the lookup of the object's kind finds the id
   */
  readonly became: (row: Row | null, id?: string) => void;
};

/**
 * The behavior of an operation that changes a declared object. The operation uses only SQL statements, which are five
 * times as fast as the same work with Prisma's client. Other operations may share the transaction, so the operation
 * must wait only for its own statements. The operation may run more than once, because the service repeats a
 * transaction after a conflict.
 */
export type ObjectWrite<O extends Operation, Row> = (context: WriteContext<O, Row>) => Promise<ResultOf<O>>;

/** The behavior of an operation. `Rows` contains the row type of each kind of object. */
type BehaviorOf<
  O extends Operation,
  Rows extends Record<ObjectKind, unknown>,
> = O["object"] extends ObjectKind
  ? O["method"] extends "GET"
    ? Handler<O>
    : ObjectWrite<O, Rows[O["object"]]>
  : Handler<O>;
/** Operations by their ids. */
export type Operations = Readonly<Record<string, Operation>>;
/** The handler of each operation. A missing handler is a type error. Omit `Rows` if no operation changes objects. */
export type Handlers<T, Rows extends Record<ObjectKind, unknown> = Record<ObjectKind, never>> = {
  readonly [Id in keyof T]: T[Id] extends Operation ? BehaviorOf<T[Id], Rows> : never;
};

/** A request that changes a declared object. */
export interface ObjectRequest {
  readonly operation: Operation & { readonly object: ObjectKind };
  /** The sender of the request, with the namespace. The transaction reads the sender's permissions again. */
  readonly sender: Caller | Member;
  readonly params: object;
  readonly body: object | undefined;
  readonly ifMatch: string | undefined;
  /** True if the service must reject a write that locks out the caller or the administrators. */
  readonly isGuarded: boolean;
  readonly creationKey: string | null;
  readonly declaration: Declaration | null;
  readonly facts: Pick<RequestFacts, "id" | "address">;
  /** Authenticates and authorizes the caller with the data of the transaction. */
  identify(services: SqlServices): Promise<Caller | Member>;
  /** Runs the operation inside the transaction of the write. */
  run(services: SqlServices, identity: Caller | Member, report: WriteReport): Promise<unknown>;
}

/** The {@link WriteContext} fields that `writeObject` sets. */
type WriteReport = Pick<WriteContext<Operation>, "found" | "repeated" | "became">;

/**
 * The result of a write, and the object's revision after the write. The revision is undefined if the write deleted the
 * object.
 */
export interface Written {
  readonly result: unknown;
  readonly revision: string | undefined;
}

/** The implementation of the API's operations. The features provide it, and the routes use it. */
export interface Behavior {
  /** The handlers of all operations, by operation id. */
  readonly handlers: object;
  /**
   * Checks billing before an operation runs.
   * @throws PaymentError billing refuses the operation
   * @throws PaymentGatewayError the payment gateway failed
   */
  checkBilling(operation: string, context: Context<Operation>): Promise<void>;
  /** Runs the write of an object in one transaction. */
  write(services: Services, request: ObjectRequest): Promise<Written>;
}
