import type { Dispatcher } from "undici";
import type { z } from "zod";
import type { ResponseHeaders } from "./answer.ts";
import type { Camelized, CamelizedInput } from "./case.ts";
import type { Declaration, Operation, Operations } from "./contract/index.ts";
import type { Credential } from "./credentials.ts";
import type { PermissionError, PreconditionFailedError } from "./errors.ts";
import type { Filter } from "./filter.ts";
import type { RetryPolicy, RetryWait, Timing } from "./retry.ts";

/** Id of a public operation. The client's method has the same name. */
export type OperationId = keyof Operations;

/** The value that a caller passes for a schema of the contract; undefined for an object without fields. */
type InputOf<S> =
  S extends z.ZodObject<infer Shape>
    ? [keyof Shape] extends [never]
      ? undefined
      : CamelizedInput<z.input<S>>
    : S extends z.ZodType
      ? CamelizedInput<z.input<S>>
      : undefined;

/** A query in which the filter may also be a result of `where()`. */
type QueryOf<Q> = Q extends undefined
  ? undefined
  : { [K in keyof Q]: K extends "filter" ? Q[K] | Filter : Q[K] };

/** One part of a request: absent if it has no fields, optional if all its fields are optional. */
type Part<Name extends string, Value> = [Value] extends [undefined]
  ? unknown
  : Record<never, never> extends Value
    ? { readonly [K in Name]?: Value }
    : { readonly [K in Name]: Value };

type Flat<T> = { [K in keyof T]: T[K] };

/** The request of an operation: `params` (of the path), `query` and `body`, if the operation has them. */
export type RequestOf<Id extends OperationId> = Flat<
  Part<"params", InputOf<Operations[Id]["params"]>> &
    Part<"query", QueryOf<InputOf<Operations[Id]["query"]>>> &
    Part<"body", InputOf<Operations[Id]["body"]>>
>;

/** Operations that return no body in some cases (`mayBeEmpty` in the contract). */
type EmptyableId = "leaveNamespace" | "registerUser";

/** Body of an operation's response, in camelCase; undefined for an operation without a response body. */
export type ResponseOf<Id extends OperationId> =
  | (Operations[Id]["success"]["body"] extends z.ZodType
      ? Camelized<z.output<Operations[Id]["success"]["body"]>>
      : undefined)
  | (Id extends EmptyableId ? undefined : never);

/** Ids of operations that return a list in pages. */
export type ListId = {
  [Id in OperationId]: Operations[Id]["query"]["shape"] extends { page: z.ZodType } ? Id : never;
}[OperationId];

/** One item of a list. */
export type ItemOf<Id extends ListId> = ResponseOf<Id> extends readonly (infer Item)[] ? Item : never;

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Number of items in the whole list; undefined if the server does not send it. */
  readonly total: number | undefined;
}

/** The arguments of a call. The request is optional if none of its fields is required. */
export type RequestArguments<Id extends OperationId, Options> =
  Record<never, never> extends RequestOf<Id>
    ? [request?: RequestOf<Id>, options?: Options]
    : [request: RequestOf<Id>, options?: Options];

/**
 * One attempt of a request, as passed to {@link ClientOptions.onRequest}. It contains no secrets, no query and no
 * bodies.
 */
export interface RequestReport {
  /** Id of the operation. */
  readonly operation: string;
  readonly method: string;
  /** Path with its parameters filled in, without the query. */
  readonly path: string;
  /** Status of the response; absent if no response arrived. */
  readonly status?: number;
  /** Milliseconds from sending the request to the end of the response. */
  readonly ms: number;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
}

/** Settings of a client. All times are in milliseconds. */
export interface ClientOptions {
  /** Address of the service, for example https://gatehouse.example.com. It may have a path. */
  readonly url: string;
  /** Credential of the caller. Without it, only operations that need no credential can be called. */
  readonly credential?: Credential;
  /** Time to connect, including TLS. @default 5000 */
  readonly connectTimeout?: number;
  /** Time until the response begins. @default 30000 */
  readonly headersTimeout?: number;
  /** Time between two parts of the response. @default 30000 */
  readonly bodyTimeout?: number;
  /** Maximum number of connections at a time. @default 16 */
  readonly connections?: number;
  /** Maximum size of a response in bytes: 64 MiB. @default 67108864 */
  readonly maxResponseSize?: number;
  /** Limits of the repetition of requests; omitted fields keep their defaults. @default DEFAULT_RETRY */
  readonly retry?: Partial<RetryPolicy>;
  /** Called before every pause between attempts. It must not throw, because the call would fail with its error. */
  readonly onWait?: (wait: RetryWait) => void;
  /**
   * Ends the pauses between attempts when it aborts. A waiting call then fails immediately with the error of its last
   * attempt, and no request is repeated. Requests in flight continue.
   */
  readonly stopWaiting?: AbortSignal;
  /** Certificates (PEM) of authorities to trust in addition to those that Node trusts. */
  readonly ca?: string;
  /** Value of the header `User-Agent`. @default "gatehouse-sdk" */
  readonly userAgent?: string;
  /** Called after every attempt. It must not throw, because the call would fail with its error. */
  readonly onRequest?: (report: RequestReport) => void;
  /** Replaces the clock, the random numbers and the waiting, for tests. @default the real ones */
  readonly timing?: Partial<Timing>;
  /**
   * Sends the requests instead of the client's own connections, for example through a proxy. The caller closes it.
   * @default the client's own connections
   */
  readonly dispatcher?: Dispatcher;
}

/** The identity that a client uses for its calls. */
export interface Identity {
  readonly kind: Credential["kind"] | "anonymous";
  /** The namespace of the calls. Absent for a user without a namespace, and if the server hides it. */
  readonly tenant?: string;
  readonly userId?: string;
}

/** The parts of a request in camelCase, before conversion to the wire's form. */
export interface RequestParts {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

/** Options of a single call. */
export interface CallOptions {
  /** Signal that ends the call when it aborts. */
  readonly signal?: AbortSignal;
  /** Additional request headers. They cannot replace those of the credential. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Value of the header `Idempotency-Key`. A server that supports the header creates only one object for all
   * creations with the same key. Other servers ignore it, and the client cannot detect whether a server supports it.
   * The caller decides whether to repeat a creation.
   */
  readonly idempotencyKey?: string;
  /**
   * Value of the header `If-Match`: the `ETag` of the object as it was read, including the quotes. If the object has
   * changed since, a server that supports the header changes nothing, and the call fails with a
   * {@link PreconditionFailedError}. Other servers ignore the header.
   */
  readonly ifMatch?: string;
  /** Limits of the repetition of this call. @default those of the client's options */
  readonly retry?: Partial<RetryPolicy>;
}

/** A complete response. */
export interface CallResult<Id extends OperationId> {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: ResponseHeaders;
  readonly body: ResponseOf<Id>;
}

/** An operation with a response body of this schema. The contract need not contain the operation. */
export type AnyOperation<R extends z.ZodType | undefined> = Operation & {
  readonly success: { readonly body: R };
};

/** A complete response of an {@link AnyOperation}. */
export interface RequestResult<R extends z.ZodType | undefined> {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: ResponseHeaders;
  readonly body: R extends z.ZodType ? Camelized<z.output<R>> : undefined;
}

/** The methods of a client in addition to those of the operations. */
export interface ClientCore {
  /** Address of the service, without a trailing slash. */
  readonly url: string;
  /**
   * Calls an operation by its id. The result contains the status and the headers in addition to the body.
   * @throws RequestError (one of its classes) when the operation fails
   * @throws ConfigurationError when the request cannot be sent in this form
   */
  call<Id extends OperationId>(id: Id, ...args: RequestArguments<Id, CallOptions>): Promise<CallResult<Id>>;
  /**
   * Calls an operation that the contract does not have, such as an operation of a later release of the service.
   * @throws RequestError (one of its classes) when the operation fails
   * @throws ConfigurationError when the request cannot be sent in this form
   */
  request<R extends z.ZodType | undefined>(
    operation: AnyOperation<R>,
    parts: RequestParts,
    options?: CallOptions,
  ): Promise<RequestResult<R>>;
  /**
   * The items of a list, page after page. Without `perPage`, a page has 100 items. Without `sortBy`, a list that
   * supports sorting is sorted by name, because the servers' own orders may change during the iteration.
   */
  iterate<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<ItemOf<Id>, void, undefined>;
  /**
   * The items of a list in pages, in the order of {@link iterate}. Each page also contains the total number of items.
   */
  pages<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<Page<ItemOf<Id>>, void, undefined>;
  /**
   * Returns a view of this client for calls in the namespace `tenant`, or the same client if `tenant` is known to be
   * its own namespace. The view sends nothing before the first call. The first call then exchanges a user's token
   * once for a token of the other namespace. The exchange changes the user's preferred namespace, and the client
   * restores it. With an API key of another namespace, every call fails with a {@link PermissionError} before it is
   * sent.
   */
  forTenant(tenant: string): Client;
  /**
   * Returns a view of this client that adds the header `Gatehouse-Declared-By` to writes. The header contains the
   * resource of a program that declares the object. The service shows it with the object and in its audit trail, as a
   * hint for users. Other services ignore it. A value that the header cannot contain (more than 1 KiB, an empty name,
   * control characters) is not sent; the write still succeeds.
   */
  declaring(declaration: Declaration): Client;
  /** The identity of the client. The client sends requests only to log in, and to find the namespace of an API key. */
  identity(options?: Pick<CallOptions, "signal">): Promise<Identity>;
  /**
   * The token that the client uses for its calls, for use in other programs. A program with the token can act as the
   * user until the token expires after days.
   * @throws ConfigurationError for an API key, which has no token
   */
  sessionToken(options?: Pick<CallOptions, "signal">): Promise<string>;
  /** Waits for running requests, then closes the connections of this client and all its views. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A method for each operation. Its name is the operation's id, and it returns the body of the response. */
export type OperationMethods = {
  readonly [Id in OperationId]: (...args: RequestArguments<Id, CallOptions>) => Promise<ResponseOf<Id>>;
};

/** A client of one service; `createClient` returns it. */
export type Client = ClientCore & OperationMethods;
