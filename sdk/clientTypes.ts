import type { Dispatcher } from "undici";
import type { ResponseHeaders } from "./answer.ts";
import type { Identity } from "./authorizer.ts";
import type { Credential } from "./credentials.ts";
import type { ItemOf, ListId, OperationId, RequestArguments, ResponseOf } from "./operations.ts";
import type { Page } from "./pages.ts";
import type { RetryPolicy, Timing } from "./retry.ts";
import type { RequestReport } from "./transport.ts";

/** Settings of a client; times in milliseconds. */
export interface ClientOptions {
  /** Address of the service, for example https://gatehouse.example.com; a path in it is kept. */
  readonly url: string;
  /** Without one, only operations that need none can be called. */
  readonly credential?: Credential;
  /** To have a connection, TLS included. Default 5,000. */
  readonly connectTimeout?: number;
  /** Until the answer begins. Default 30,000. */
  readonly headersTimeout?: number;
  /** Between two parts of the answer. Default 30,000. */
  readonly bodyTimeout?: number;
  /** Connections at a time. Default 16. */
  readonly connections?: number;
  /** Bytes of an answer. Default 64 MiB. */
  readonly maxResponseSize?: number;
  readonly retry?: Partial<RetryPolicy>;
  /** Certificates (PEM) of authorities to trust beside those that Node does. */
  readonly ca?: string;
  /** Default `gatehouse-sdk`. */
  readonly userAgent?: string;
  /** Called after every attempt. It must not throw: the call would fail with its error. */
  readonly onRequest?: (report: RequestReport) => void;
  /** Clock, chance and sleep, for tests. */
  readonly timing?: Partial<Timing>;
  /** Sends the requests instead of the client's own pool (for a proxy); the caller closes it. */
  readonly dispatcher?: Dispatcher;
}

/** What may be set for a single call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Further request headers; those of the credential can not be replaced. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Sent as `Idempotency-Key`: a server that knows it makes one object of repeated creations. Repeating them is
   * the caller's part: the client can not tell whether the server does.
   */
  readonly idempotencyKey?: string;
  /**
   * Sent as `If-Match`: the `ETag` of the object as it was read, quotes included. A server that knows it changes
   * nothing when the object has changed since, and the call fails with a PreconditionFailedError; others ignore it.
   */
  readonly ifMatch?: string;
  readonly retry?: Partial<RetryPolicy>;
}

/** A whole answer; `headers` by lower-case name. */
export interface CallResult<Id extends OperationId> {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: ResponseOf<Id>;
}

/** The methods that exist beside those of the operations. */
export interface ClientCore {
  /** Address of the service, without a trailing slash. */
  readonly url: string;
  /**
   * Calls an operation; gives status and headers beside the body.
   * @throws RequestError one of its classes, when it fails
   * @throws ConfigurationError when the request can not be sent as it is
   */
  call<Id extends OperationId>(id: Id, ...args: RequestArguments<Id, CallOptions>): Promise<CallResult<Id>>;
  /**
   * The items of a list, page after page (100 a page where `perPage` is not given). Where a list can be
   * sorted and `sortBy` is not given, by name: the servers' own orders move while one reads.
   */
  iterate<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<ItemOf<Id>, void, undefined>;
  /** The same in pages, each with how many items the list has in all. */
  pages<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<Page<ItemOf<Id>>, void, undefined>;
  /**
   * A view of this client whose calls are for namespace `tenant`; the same client when that is known to be
   * its own. Nothing is sent before the first call. For another namespace a user's token is exchanged once,
   * and the user's preferred namespace, which the exchange changes, is set back; an API key of another namespace is refused with a
   * PermissionError before the call is sent.
   */
  forTenant(tenant: string): Client;
  /** Who the client calls as. Asks the server only for an API key (once), or to log in. */
  identity(options?: Pick<CallOptions, "signal">): Promise<Identity>;
  /** Waits for running requests and closes the connections, also those of its views. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A method for every operation, named by its id, that gives the body of the answer. */
export type OperationMethods = {
  readonly [Id in OperationId]: (...args: RequestArguments<Id, CallOptions>) => Promise<ResponseOf<Id>>;
};

export type Client = ClientCore & OperationMethods;
