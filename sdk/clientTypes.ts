import type { Dispatcher } from "undici";
import type { z } from "zod";
import type { ResponseHeaders } from "./answer.ts";
import type { Camelized, CamelizedInput } from "./case.ts";
import type { Declaration, Operation, Operations } from "./contract/index.ts";
import type { Credential } from "./credentials.ts";
import type { PermissionError, PreconditionFailedError } from "./errors.ts";
import type { Filter } from "./filter.ts";
import type { RetryPolicy, RetryWait, Timing } from "./retry.ts";

/** Id of a public operation; also the name of the client's method. */
export type OperationId = keyof Operations;

/** What a caller gives for a schema of the contract; undefined for an object without fields. */
type InputOf<S> =
  S extends z.ZodObject<infer Shape>
    ? [keyof Shape] extends [never]
      ? undefined
      : CamelizedInput<z.input<S>>
    : S extends z.ZodType
      ? CamelizedInput<z.input<S>>
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
type EmptyableId = "leaveNamespace" | "registerUser";

/** Body of an operation's answer, in camelCase; undefined where it has none. */
export type ResponseOf<Id extends OperationId> =
  | (Operations[Id]["success"]["body"] extends z.ZodType
      ? Camelized<z.output<Operations[Id]["success"]["body"]>>
      : undefined)
  | (Id extends EmptyableId ? undefined : never);

/** Operations that list something in pages. */
export type ListId = {
  [Id in OperationId]: Operations[Id]["query"]["shape"] extends { page: z.ZodType } ? Id : never;
}[OperationId];

/** One item of a list. */
export type ItemOf<Id extends ListId> = ResponseOf<Id> extends readonly (infer Item)[] ? Item : never;

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** How many items the list has in all; undefined where the server does not say. */
  readonly total: number | undefined;
}

/** The arguments of a call; the request may be left out where nothing in it is required. */
export type RequestArguments<Id extends OperationId, Options> =
  Record<never, never> extends RequestOf<Id>
    ? [request?: RequestOf<Id>, options?: Options]
    : [request: RequestOf<Id>, options?: Options];

/** What {@link ClientOptions.onRequest} is told of one attempt; no secrets, no query, no bodies. */
export interface RequestReport {
  /** Id of the operation. */
  readonly operation: string;
  readonly method: string;
  /** Path with its parameters filled in, without the query. */
  readonly path: string;
  /** Absent when no answer came. */
  readonly status?: number;
  /** Milliseconds from sending to the end of the answer. */
  readonly ms: number;
  /** From 1. */
  readonly attempt: number;
}

/** Settings of a client; times in milliseconds. */
export interface ClientOptions {
  /** Address of the service, for example https://gatehouse.example.com; a path in it is kept. */
  readonly url: string;
  /** Proves the caller to the service. Left out, only operations that need none can be called. */
  readonly credential?: Credential;
  /** Time to make a connection, TLS included. @default 5000 */
  readonly connectTimeout?: number;
  /** Time until the answer begins. @default 30000 */
  readonly headersTimeout?: number;
  /** Time between two parts of the answer. @default 30000 */
  readonly bodyTimeout?: number;
  /** Most connections at a time. @default 16 */
  readonly connections?: number;
  /** Most bytes of an answer: 64 MiB. @default 67108864 */
  readonly maxResponseSize?: number;
  /** For how long requests are repeated; what is left out stays as it is. @default DEFAULT_RETRY */
  readonly retry?: Partial<RetryPolicy>;
  /** Called before every pause between attempts. It must not throw: the call would fail with its error. */
  readonly onWait?: (wait: RetryWait) => void;
  /**
   * Aborting it ends the pauses between attempts: a call that waits fails at once with the error of its last attempt,
   * and no request is repeated any more. Requests in flight are not ended.
   */
  readonly stopWaiting?: AbortSignal;
  /** Certificates (PEM) of authorities that are trusted beside those that Node trusts. */
  readonly ca?: string;
  /** Sent as `User-Agent`. @default "gatehouse-sdk" */
  readonly userAgent?: string;
  /** Called after every attempt. It must not throw: the call would fail with its error. */
  readonly onRequest?: (report: RequestReport) => void;
  /** Replaces the clock, the random numbers and the waiting, for tests. @default the real ones */
  readonly timing?: Partial<Timing>;
  /**
   * Sends the requests in place of the client's own connections, for a proxy say; the caller closes it.
   * @default connections of the client's own
   */
  readonly dispatcher?: Dispatcher;
}

/** Who a client calls as. */
export interface Identity {
  readonly kind: Credential["kind"] | "anonymous";
  /** The namespace its calls are for. Absent for a user without one, and where the server hides it. */
  readonly tenant?: string;
  readonly userId?: string;
}

/** The parts of a request before they are put on the wire, in camelCase. */
export interface RequestParts {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

/** What may be set for a single call. */
export interface CallOptions {
  /** Ends the call when it aborts. */
  readonly signal?: AbortSignal;
  /** Further request headers; those of the credential cannot be replaced. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Sent as `Idempotency-Key`. A server that knows the header makes one object of all creations under one key. Other
   * servers ignore it, and the client cannot tell them apart: whether to repeat a creation is left to the caller.
   */
  readonly idempotencyKey?: string;
  /**
   * Sent as `If-Match`: the `ETag` of the object as it was read, quotes included. If the object has changed since, a
   * server that knows the header changes nothing, and the call fails with a {@link PreconditionFailedError}. Other
   * servers ignore it.
   */
  readonly ifMatch?: string;
  /** For how long this call is repeated. @default what the client's options say */
  readonly retry?: Partial<RetryPolicy>;
}

/** A whole answer. */
export interface CallResult<Id extends OperationId> {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ResponseHeaders;
  readonly body: ResponseOf<Id>;
}

/** An operation with an answer of this schema, whether the contract has it or not. */
export type AnyOperation<R extends z.ZodType | undefined> = Operation & {
  readonly success: { readonly body: R };
};

/** A whole answer to an operation with an answer of this schema. */
export interface RequestResult<R extends z.ZodType | undefined> {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ResponseHeaders;
  readonly body: R extends z.ZodType ? Camelized<z.output<R>> : undefined;
}

/** The methods of a client beside those of the operations. */
export interface ClientCore {
  /** Address of the service, without a trailing slash. */
  readonly url: string;
  /**
   * Calls an operation by its id, for the status and the headers beside the body.
   * @throws RequestError one of its classes, when it fails
   * @throws ConfigurationError when the request cannot be sent as it is
   */
  call<Id extends OperationId>(id: Id, ...args: RequestArguments<Id, CallOptions>): Promise<CallResult<Id>>;
  /**
   * Calls an operation that the contract does not have, such as one of services of a later release.
   * @throws RequestError one of its classes, when it fails
   * @throws ConfigurationError when the request cannot be sent as it is
   */
  request<R extends z.ZodType | undefined>(
    operation: AnyOperation<R>,
    parts: RequestParts,
    options?: CallOptions,
  ): Promise<RequestResult<R>>;
  /**
   * The items of a list, page after page: 100 items a page where the request has no `perPage`. A list that can be
   * sorted is sorted by name where the request has no `sortBy`, since the servers' own orders change while one reads.
   */
  iterate<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<ItemOf<Id>, void, undefined>;
  /** The items of a list as {@link iterate} gives them, in pages that say how many items the list has in all. */
  pages<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<Page<ItemOf<Id>>, void, undefined>;
  /**
   * A view of this client whose calls are for the namespace `tenant`; the same client when that is known to be its own.
   * Nothing is sent before the first call. A user's token is then exchanged once for one of the other namespace; the
   * exchange changes the user's preferred namespace, which is set back. With an API key of another namespace every call
   * fails with a {@link PermissionError} before it is sent.
   */
  forTenant(tenant: string): Client;
  /**
   * A view of this client whose writes say which resource of a program they are of, in `Gatehouse-Declared-By`: a hint
   * for people, which the service shows with the object and in its audit trail. Other services ignore it. What the
   * header cannot hold (more than 1 KiB, an empty name, control characters) is not sent: no write fails for a hint.
   */
  declaring(declaration: Declaration): Client;
  /** Who the client calls as. It sends requests only to log in, and to find out the namespace of an API key. */
  identity(options?: Pick<CallOptions, "signal">): Promise<Identity>;
  /**
   * The token of the client's user for its namespace, for other programs: whoever has it is that user, until it expires
   * after days. It is the one that calls are made with.
   * @throws ConfigurationError for an API key, which has none
   */
  sessionToken(options?: Pick<CallOptions, "signal">): Promise<string>;
  /** Waits for running requests, and closes the connections of this client and all its views. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A method for each operation, which has the operation's id as its name and gives the body of the answer. */
export type OperationMethods = {
  readonly [Id in OperationId]: (...args: RequestArguments<Id, CallOptions>) => Promise<ResponseOf<Id>>;
};

/** A client of one service, as `createClient` makes it. */
export type Client = ClientCore & OperationMethods;
