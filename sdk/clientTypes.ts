import type { Dispatcher } from "undici";
import type { z } from "zod";
import type { ResponseHeaders } from "./answer.ts";
import type { Camelized, CamelizedInput } from "./case.ts";
import type { Declaration, ObjectKind, Operation, Operations, Role } from "./contract/index.ts";
import type { Credential } from "./credentials.ts";
import type { AnswerSource, LockoutGuardError, PermissionError, PreconditionFailedError } from "./errors.ts";
import type { Filter } from "./filter.ts";
import type { ProxyFor } from "./proxies.ts";
import type { RetryPolicy, RetryWait, Timing } from "./retry.ts";

/** Id of a public operation. The client's method has the same name. */
export type OperationId = keyof Operations;

/**
 * Type of a caller's input for a request schema of the contract, in camelCase. The type is undefined for a schema
 * without fields.
 */
type InputOf<S> =
  S extends z.ZodObject<infer Shape>
    ? [keyof Shape] extends [never]
      ? undefined
      : CamelizedInput<z.input<S>>
    : S extends z.ZodType
      ? CamelizedInput<z.input<S>>
      : undefined;

/** Type of an operation's query, in which `filter` may also be a {@link Filter} from `where()`. */
type QueryOf<Q> = Q extends undefined
  ? undefined
  : { [K in keyof Q]: K extends "filter" ? Q[K] | Filter : Q[K] };

/**
 * Type of one part of a request, such as the query. The part is absent if it has no fields, and optional if all its
 * fields are optional.
 */
type Part<Name extends string, Value> = [Value] extends [undefined]
  ? unknown
  : Record<never, never> extends Value
    ? { readonly [K in Name]?: Value }
    : { readonly [K in Name]: Value };

type Flat<T> = { [K in keyof T]: T[K] };

/** Data about a successful response to a write and about the sender of the response. */
export interface WitnessedAnswer {
  /** Id of the operation, as in the contract. */
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  /** True if the body of the response proves that this project's service sent the response. */
  readonly isFromService: boolean;
  readonly source: AnswerSource;
}

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

/** Ids of operations that return a paginated list. */
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
 * Data about one attempt of a request, for {@link ClientOptions.onRequest}. Contains no secrets, no query and no
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
  /** Time from the start of the request to the end of the response, in milliseconds. */
  readonly ms: number;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
}

/** Settings of a client. All times are in milliseconds. */
export interface ClientOptions {
  /** Address of the service, for example https://gatehouse.example.com. The address may have a path. */
  readonly url: string;
  /** Credential of the caller. Without a credential, the client can call only operations that require none. */
  readonly credential?: Credential;
  /** Maximum time to connect, including the TLS handshake. @default 5000 */
  readonly connectTimeout?: number;
  /** Maximum time until the response begins. @default 30000 */
  readonly headersTimeout?: number;
  /** Maximum time between two parts of the response. @default 30000 */
  readonly bodyTimeout?: number;
  /** Maximum number of simultaneous connections. @default 16 */
  readonly connections?: number;
  /** Maximum size of a response in bytes: 64 MiB. @default 67108864 */
  readonly maxResponseSize?: number;
  /** Limits for retries of requests; omitted fields keep their defaults. @default DEFAULT_RETRY */
  readonly retry?: Partial<RetryPolicy>;
  /**
   * Function that the client calls before every retry delay. The function must not throw, because its error would
   * replace the result of the call.
   */
  readonly onWait?: (wait: RetryWait) => void;
  /**
   * Signal that stops retries. When the signal aborts, a call that is waiting for its next attempt fails immediately
   * with the error of its last attempt. After the signal has aborted, the client starts no further attempts. Requests
   * in flight continue.
   */
  readonly stopWaiting?: AbortSignal;
  /** Certificates (PEM) of authorities to trust in addition to those that Node trusts. */
  readonly ca?: string;
  /** Version of the server, such as `0.27`. @default the version that the server reports */
  readonly serverVersion?: string;
  /** Value of the header `User-Agent`. @default "gatehouse-sdk" */
  readonly userAgent?: string;
  /**
   * Function that the client calls after every attempt. The function must not throw, because its error would replace
   * the result of the call.
   */
  readonly onRequest?: (report: RequestReport) => void;
  /** Clock, random numbers and sleep function, which tests replace. @default those of the system */
  readonly timing?: Partial<Timing>;
  /**
   * Function that returns the HTTP proxy for requests to an address, such as the function that
   * `proxiesFromEnvironment()` returns. The client calls the function for requests to the service, and for token
   * requests to GitHub.
   * @default no proxy: the client does not read the environment
   */
  readonly proxyFor?: ProxyFor;
  /**
   * Dispatcher that sends the requests, instead of the client's own connections and proxies. The client does not close the dispatcher.
   * @default the client's own connections
   */
  readonly dispatcher?: Dispatcher;
}

/** The identity that a client uses for its calls. */
export interface Identity {
  readonly kind: Credential["kind"] | "anonymous";
  /**
   * The namespace of the calls. Absent for a user without a namespace, and for an API key to which the server does not
   * reveal its namespace.
   */
  readonly tenant?: string;
  readonly userId?: string;
  /** Id of the trusted workload; absent for other credentials. */
  readonly workloadId?: string;
  /** The trusted workload and its session; absent for other credentials. */
  readonly workload?: WorkloadIdentity;
}

/** A trusted workload, and the session of the client in one namespace. */
export interface WorkloadIdentity {
  /** Name of the trusted workload. */
  readonly name: string;
  readonly role: Role;
  /** Name of the running job in the audit trail. */
  readonly actor: string;
  /** Time until which the session can be renewed. After this time, the client needs a new token from the provider. */
  readonly renewableUntil: Date;
}

/** The parts of a request in camelCase, before conversion to the wire format. */
export interface RequestParts {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

/** Options of a single call. */
export interface CallOptions {
  /** Signal that aborts the call. */
  readonly signal?: AbortSignal;
  /** Additional request headers, which cannot replace the headers of the credential. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Value of the header `Idempotency-Key`. A server that supports the header creates only one object for all create
   * requests with the same key. Other servers ignore the header, and the client cannot detect whether a server supports
   * it. The client therefore does not retry a create request just because the request has a key. The caller decides
   * whether to repeat the request.
   */
  readonly idempotencyKey?: string;
  /**
   * Value of the header `If-Match`: the `ETag` from the response that returned the object, including the quotes. If the
   * object has changed since that response, a server that supports the header changes nothing, and the call fails with
   * a {@link PreconditionFailedError}. Other servers ignore the header.
   */
  readonly ifMatch?: string;
  /** Limits for retries of this call. @default those of the client's options */
  readonly retry?: Partial<RetryPolicy>;
}

/**
 * The revision that an object must have for a write to succeed. If the object has a different revision, a service that
 * supports revisions responds with 412, and the call fails with a {@link PreconditionFailedError}.
 */
export interface WriteCondition {
  readonly kind: ObjectKind;
  /** The id of the object, which is one segment of the path of write requests. */
  readonly id: string;
  readonly revision: string;
}

/** A complete response. */
export interface CallResult<Id extends OperationId> {
  readonly status: number;
  /** Headers by lower-case name. */
  readonly headers: ResponseHeaders;
  readonly body: ResponseOf<Id>;
}

/** An operation whose response body matches the schema `R`. The contract need not contain the operation. */
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

/** The methods of a client, except the methods of the single operations: see {@link OperationMethods}. */
export interface ClientCore {
  /** Address of the service, without a trailing slash. */
  readonly url: string;
  /**
   * Calls an operation by its id. Returns the status, the headers and the body of the response.
   * @throws RequestError (or a subclass) when the operation fails
   * @throws ConfigurationError when the request cannot be sent in this form
   */
  call<Id extends OperationId>(id: Id, ...args: RequestArguments<Id, CallOptions>): Promise<CallResult<Id>>;
  /**
   * Calls an operation that the contract does not contain, such as an operation of a later release of the service.
   * @throws RequestError (or a subclass) when the operation fails
   * @throws ConfigurationError when the request cannot be sent in this form
   */
  request<R extends z.ZodType | undefined>(
    operation: AnyOperation<R>,
    parts: RequestParts,
    options?: CallOptions,
  ): Promise<RequestResult<R>>;
  /**
   * Yields all items of a list, and requests the pages one after another. Default page size: 100 items. Without
   * `sortBy`, a list that supports sorting is sorted by name, because the default order of a server may change during
   * the iteration.
   */
  iterate<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<ItemOf<Id>, void, undefined>;
  /** Yields the pages of a list, in the order of {@link iterate}. Each page also contains the total number of items. */
  pages<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<Page<ItemOf<Id>>, void, undefined>;
  /**
   * Returns a view of this client for calls in the namespace `tenant`. Returns this client itself if `tenant` is
   * already known to be the client's own namespace. The view sends no request before the first call. With a user's
   * credential, the first call exchanges the user's token for a token of the other namespace. The exchange changes the
   * user's preferred namespace, which the client then restores. With an API key of another namespace, every call fails
   * with a {@link PermissionError} before the client sends the call. With a workload's credential, the first call
   * exchanges a token of the workload for a session in the other namespace.
   */
  forTenant(tenant: string): Client;
  /**
   * Returns a view of this client that adds the header `Gatehouse-Declared-By` to writes. The header contains the
   * project, stack and resource name of the program that declares the object. The service shows this value with the
   * object and in its audit trail, as a hint for users. Other servers ignore the header. If the value is not valid in
   * the header (more than 1 KiB, an empty name, control characters), the client omits the header.
   */
  declaring(declaration: Declaration): Client;
  /**
   * Returns a view of this client that adds the header `Gatehouse-Lockout-Guard` to updates and deletions of members,
   * API keys and trusted workloads. The service then refuses a write that locks out the caller or the administrators,
   * and the call fails with a {@link LockoutGuardError}. Other servers ignore the header.
   */
  guarding(): Client;
  /**
   * Returns a view of this client that calls `check` before it sends the first write, so that the caller can read the
   * object first. If `check` fails, the call fails and the client sends nothing. The client also calls `check` if the
   * first write changes a different object.
   */
  checkingFirstWrite(check: () => Promise<WriteCondition | undefined>): Client;
  /**
   * Returns a client that calls `witness` after each successful write, with data about the sender of the response. The
   * caller can use the data to detect a proxy's page with a success status. If a write returns no body, the client
   * itself cannot detect such a page.
   */
  witnessing(witness: (answer: WitnessedAnswer) => void): Client;
  /**
   * Returns the version of the server and the dialect of the client's requests. The client requests the version once,
   * when it first calls an operation that differs between versions.
   * @throws RequestError if the server cannot be reached
   */
  serverVersion(): Promise<ServerVersion>;
  /**
   * Returns the identity of the client. The client sends a request only if it must first log in or find the namespace
   * of an API key.
   */
  identity(options?: Pick<CallOptions, "signal">): Promise<Identity>;
  /**
   * Returns the token that the client uses for its calls, for use in other programs. A program with the token can act
   * as the user until the token expires. Tokens of users are valid for several days, tokens of workloads for at most 15
   * minutes.
   * @throws ConfigurationError for an API key, which has no token
   */
  sessionToken(options?: Pick<CallOptions, "signal">): Promise<string>;
  /** Waits for running requests, then closes the connections of this client and all its views. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The methods of the operations. The name of each method is the operation's id. Each method returns the body of the
 * response.
 */
export type OperationMethods = {
  readonly [Id in OperationId]: (...args: RequestArguments<Id, CallOptions>) => Promise<ResponseOf<Id>>;
};

/** A client of one service; `createClient` returns it. */
export type Client = ClientCore & OperationMethods;

/** Performs an operation of the contract on a server version that requires different requests for it. */
type Perform<Id extends OperationId> = (
  client: Client,
  parts: RequestOf<Id>,
  options: CallOptions,
) => Promise<CallResult<Id>>;

/** Functions by operation id, for the operations that require different requests on some server versions. */
export type Performed = { readonly [Id in OperationId]?: Perform<Id> };

/** Functions by operation id that change the request of the contract. They rename query fields or add a header. */
type Changed = {
  readonly [Id in OperationId]?: (
    parts: RequestOf<Id>,
    options: CallOptions,
    url: string,
  ) => { readonly parts: RequestOf<Id>; readonly options: CallOptions };
};

/** The names of the differences. */
export type DifferenceName =
  | "device counts"
  | "tags as objects"
  | "no device filter"
  | "fixed tags of keys"
  | "filter by tag name"
  | "invitations"
  | "device order"
  | "access modes"
  | "one namespace"
  | "API keys read less"
  | "errors without a message";

/** A difference between the contract and the server versions from {@link since} to {@link until}. */
export interface Difference {
  readonly name: DifferenceName;
  /** The first version with the difference, such as `0.21`. */
  readonly since: string;
  /** The last version with the difference. @default the newest version */
  readonly until?: string;
  /** A sentence for users. */
  readonly text: string;
  readonly performs?: Performed;
  readonly changes?: Changed;
}

/** The differences between the contract and one range of versions. */
export interface Dialect {
  /** The first version of the range, such as `0.21`. */
  readonly name: string;
  readonly differences: readonly Difference[];
}

/** The version of a server, and the dialect that clients use for it. */
export interface ServerVersion {
  /** The version that the server reports, without `v`. Undefined if the server reports no version number. */
  readonly version: string | undefined;
  readonly dialect: Dialect;
  /** True if the version is newer than the newest known dialect. The client then uses the newest dialect. */
  readonly isNewer: boolean;
}
