import { abortable } from "./abortable.ts";
import {
  type Authorization,
  type Authorizer,
  type AuthorizerHost,
  authorizerOf,
  type Identity,
} from "./authorizer.ts";
import { fromWire } from "./case.ts";
import type { CallOptions, CallResult, Client, ClientCore, ClientOptions } from "./clientTypes.ts";
import { type Operation, operations } from "./contract/index.ts";
import { AuthenticationError, TransportError } from "./errors.ts";
import type { ItemOf, ListId, OperationId, RequestArguments, RequestOf, ResponseOf } from "./operations.ts";
import { iteratePages, type Page } from "./pages.ts";
import { buildRequest, type RequestParts, type WireRequest } from "./request.ts";
import { CODE_OPERATIONS, DEFAULT_RETRY, type RetryPolicy, SYSTEM_TIMING } from "./retry.ts";
import { type Answer, Transport } from "./transport.ts";

const DEFAULTS = {
  connectTimeout: 5000,
  headersTimeout: 30_000,
  bodyTimeout: 30_000,
  connections: 16,
  maxResponseSize: 64 * 1024 * 1024,
  userAgent: "gatehouse-sdk",
};

/** What all views of a client share. */
interface Shared {
  readonly transport: Transport;
  readonly authorizer: Authorizer;
  readonly retry: RetryPolicy;
  readonly views: Map<string | undefined, Client>;
}

class Core implements ClientCore {
  readonly #shared: Shared;
  readonly #tenant: string | undefined;

  constructor(shared: Shared, tenant: string | undefined) {
    this.#shared = shared;
    this.#tenant = tenant;
  }

  get url(): string {
    return this.#shared.transport.address;
  }

  async call<Id extends OperationId>(
    id: Id,
    ...[parts, options]: RequestArguments<Id, CallOptions>
  ): Promise<CallResult<Id>> {
    const operation: Operation = operations[id];
    const request = buildRequest(operation, (parts ?? {}) as RequestParts);
    const answer = await this.#authorized(operation, request, options ?? {});
    return this.#result(id, answer);
  }

  async *iterate<Id extends ListId>(
    id: Id,
    ...args: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<ItemOf<Id>, void, undefined> {
    for await (const { items } of this.pages(id, ...args)) yield* items;
  }

  pages<Id extends ListId>(
    id: Id,
    ...[parts, options]: RequestArguments<Id, CallOptions>
  ): AsyncGenerator<Page<ItemOf<Id>>, void, undefined> {
    const { query } = (parts ?? {}) as RequestParts;
    return iteratePages(operations[id], query, async (page) => {
      const request = { ...parts, query: page } as unknown as RequestOf<Id>;
      const args = [request, options] as RequestArguments<Id, CallOptions>;
      const { headers, body } = await this.call(id, ...args);
      return { headers, items: body as unknown as readonly ItemOf<Id>[] };
    });
  }

  forTenant(tenant: string): Client {
    const known = this.#shared.authorizer.knownTenant;
    return viewOf(this.#shared, tenant === known ? undefined : tenant);
  }

  identity(options: Pick<CallOptions, "signal"> = {}): Promise<Identity> {
    return abortable(() => this.#shared.authorizer.identity(this.#host(), this.#tenant), options.signal);
  }

  close(): Promise<void> {
    return this.#shared.transport.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #result<Id extends OperationId>(id: Id, answer: Answer): CallResult<Id> {
    const schema = operations[id].success.body;
    const body = schema === undefined ? undefined : fromWire(schema, answer.body);
    return { status: answer.status, headers: answer.headers, body: body as ResponseOf<Id> };
  }

  async #authorized(operation: Operation, request: WireRequest, options: CallOptions): Promise<Answer> {
    if (operation.auth.includes("none")) {
      return this.#send(operation, request, options, undefined);
    }
    const authorization = await this.#authorize(operation, request, options);
    try {
      return await this.#accepted(operation, request, options, authorization);
    } catch (error) {
      if (!this.#renewed(operation, authorization, error)) {
        throw error;
      }
      // Refused with 401, so it had no effect and may be sent again, whatever it is.
      const again = await this.#authorize(operation, request, options);
      return this.#accepted(operation, request, options, again);
    }
  }

  async #accepted(
    operation: Operation,
    request: WireRequest,
    options: CallOptions,
    authorization: Authorization,
  ): Promise<Answer> {
    const answer = await this.#send(operation, request, options, authorization);
    if (authorization.token !== undefined) {
      this.#shared.authorizer.accepted(authorization.token);
    }
    return answer;
  }

  /** True when `error` means that the token was refused, and another one can be had. */
  #renewed(operation: Operation, { token }: Authorization, error: unknown): boolean {
    if (!(error instanceof AuthenticationError) || token === undefined) {
      return false;
    }
    const ofRequest = CODE_OPERATIONS.has(operation.id) && error.expiredAt === undefined;
    return !ofRequest && this.#shared.authorizer.renew(this.#host(), token);
  }

  async #authorize(operation: Operation, request: WireRequest, options: CallOptions): Promise<Authorization> {
    const details = {
      operation: operation.id,
      method: operation.method,
      path: request.path,
      outcome: "none",
      attempts: 0,
    } as const;
    let authorization: Authorization | undefined;
    try {
      authorization = await abortable(
        () => this.#shared.authorizer.authorize(this.#host(), this.#tenant),
        options.signal,
      );
    } catch (error) {
      if (options.signal?.aborted && error === options.signal.reason) {
        throw new TransportError("aborted by the caller before it was sent", details, "aborted", error);
      }
      throw error;
    }
    if (!authorization) {
      throw new AuthenticationError(
        "needs a credential: set GATEHOUSE_API_KEY, GATEHOUSE_TOKEN, or GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD",
        details,
      );
    }
    return authorization;
  }

  #send(
    operation: Operation,
    request: WireRequest,
    options: CallOptions,
    authorization: Authorization | undefined,
  ): Promise<Answer> {
    const { transport, authorizer, retry } = this.#shared;
    const { signal, idempotencyKey, ifMatch } = options;
    const token = authorization?.token;
    return transport.send(operation, request, {
      headers: {
        ...lowerCase(options.headers ?? {}),
        ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
        ...(ifMatch !== undefined && { "if-match": ifMatch }),
        ...authorization?.headers,
      },
      retry: { ...retry, ...options.retry },
      secrets: [...authorizer.secrets(), ...(token === undefined ? [] : [token])],
      ...(signal && { signal }),
      ...(token !== undefined && { token }),
    });
  }

  /** Calls of the authorizer itself: not authorized by it again, and not ended by one caller's signal. */
  #host(): AuthorizerHost {
    const send = async <Id extends OperationId>(
      id: Id,
      parts: RequestOf<Id>,
      authorization: Authorization | undefined,
    ) => {
      const operation: Operation = operations[id];
      const request = buildRequest(operation, parts as RequestParts);
      const answer = await this.#send(operation, request, {}, authorization);
      return this.#result(id, answer).body;
    };
    return {
      timing: this.#shared.transport.timing,
      call: <Id extends OperationId>(id: Id, parts: RequestOf<Id>, token?: string) =>
        send(id, parts, token === undefined ? undefined : { headers: bearer(token), token }),
      callWithKey: async <Id extends OperationId>(id: Id, parts: RequestOf<Id>) =>
        send(id, parts, await this.#shared.authorizer.authorize(this.#host())),
    };
  }
}

function bearer(token: string): Record<string, string> {
  return { authorization: `Bearer ${token}` };
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function viewOf(shared: Shared, tenant: string | undefined): Client {
  let view = shared.views.get(tenant);
  if (!view) {
    const core = new Core(shared, tenant);
    const ids = Object.keys(operations) as OperationId[];
    const methods = ids.map((id) => [
      id,
      async (...args: unknown[]) =>
        (await core.call(id, ...(args as RequestArguments<typeof id, CallOptions>))).body,
    ]);
    view = Object.assign(core, Object.fromEntries(methods)) as Client;
    shared.views.set(tenant, view);
  }
  return view;
}

/**
 * A client of one service. It keeps connections open: close it, or let the process end.
 * @throws ConfigurationError when the URL is not one of a service, or `ca` no certificate.
 * @example
 * const client = createClient({ url: "https://gatehouse.example.com", credential: apiKeyCredential(key) });
 * const devices = await client.getDevices({ query: { filter: where("tags").contains(["prod"]) } });
 */
export function createClient(options: ClientOptions): Client {
  const { credential, retry, timing, ...rest } = options;
  const transport = new Transport({ ...DEFAULTS, ...rest, timing: { ...SYSTEM_TIMING, ...timing } });
  return viewOf(
    {
      transport,
      authorizer: authorizerOf(transport.address, credential),
      retry: { ...DEFAULT_RETRY, ...retry },
      views: new Map(),
    },
    undefined,
  );
}
