import type { z } from "zod";
import {
  ApiKeyAuthorizer,
  type Authorization,
  type Authorizer,
  type AuthorizerHost,
  sharedSession,
  UserSession,
} from "./authorizer.ts";
import { fromWire } from "./case.ts";
import type {
  AnyOperation,
  CallOptions,
  CallResult,
  Client,
  ClientCore,
  ClientOptions,
  Identity,
  ItemOf,
  ListId,
  OperationId,
  Page,
  RequestArguments,
  RequestOf,
  RequestParts,
  RequestResult,
  ServerVersion,
  WitnessedAnswer,
  WriteCondition,
} from "./clientTypes.ts";
import {
  DECLARED_BY,
  type Declaration,
  declaredByText,
  LOCKOUT_GUARD,
  type Operation,
  operations,
  takesDeclaredBy,
  takesIfMatch,
  takesLockoutGuard,
} from "./contract/index.ts";
import type { Credential } from "./credentials.ts";
import { differs, serverVersionOf, versionOf } from "./dialect.ts";
import { AuthenticationError, ConfigurationError, TransportError } from "./errors.ts";
import { iteratePages } from "./pages.ts";
import { PromiseCache } from "./promises.ts";
import { CODE_OPERATIONS, DEFAULT_RETRY, type RetryPolicy, SYSTEM_TIMING } from "./retry.ts";
import { type Answer, buildRequest, DEFAULTS, Transport, type WireRequest } from "./transport.ts";
import { WorkloadAuthorizer } from "./workloadAuthorizer.ts";

/** Maximum size of a response from a server other than the service, in bytes: 64 KiB. */
const OTHER_RESPONSE_SIZE = 65_536;

/** The data that a client and all its views for other namespaces share. {@link ClientCore.forTenant} creates a view. */
interface Shared {
  readonly transport: Transport;
  readonly authorizer: Authorizer;
  readonly retry: RetryPolicy;
  readonly views: Map<string | undefined, Client>;
  /** Value of the header `Gatehouse-Declared-By` for writes. */
  readonly declaredBy: string | undefined;
  /** True if writes contain the header `Gatehouse-Lockout-Guard`. */
  readonly isGuarded: boolean;
  /** The check before the first write. See {@link ClientCore.checkingFirstWrite}. */
  readonly firstWrite: FirstWrite | undefined;
  /** Called for each successful write. */
  readonly witness: ((answer: WitnessedAnswer) => void) | undefined;
  /**
   * A cache of the server's version, by the server's address. The cache is empty until a request needs the version.
   */
  readonly versions: PromiseCache<string, ServerVersion>;
}

/** Calls a check before the first write, and makes the first write to the checked object conditional. */
class FirstWrite {
  readonly #check: () => Promise<WriteCondition | undefined>;
  #condition: Promise<WriteCondition | undefined> | undefined;
  #isSent = false;

  constructor(check: () => Promise<WriteCondition | undefined>) {
    this.#check = check;
  }

  /**
   * Returns the value of `If-Match` for the first write to the checked object. Returns undefined for all other
   * requests.
   */
  async ifMatch(operation: Operation, path: string): Promise<string | undefined> {
    if (operation.method === "GET") return undefined;
    this.#condition ??= this.#check();
    const condition = await this.#condition;
    if (!condition || this.#isSent || !takesIfMatch(operation) || operation.object !== condition.kind) return;
    if (!path.split("/").map(decodeURIComponent).includes(condition.id)) return undefined;
    this.#isSent = true;
    return `"${condition.revision}"`;
  }
}

class Core implements ClientCore {
  readonly #shared: Shared;
  readonly #tenant: string | undefined;
  readonly #host: AuthorizerHost;

  constructor(shared: Shared, tenant: string | undefined) {
    this.#shared = shared;
    this.#tenant = tenant;
    this.#host = {
      address: shared.transport.address,
      timing: shared.transport.timing,
      sendTo: async ({ origin, pathname, search }, operation, { headers, token }) => {
        const transport = shared.transport.to(origin, OTHER_RESPONSE_SIZE);
        const request = { path: pathname, target: `${pathname}${search}`, secrets: [] };
        const secrets = token === undefined ? [] : [token];
        try {
          const answer = await transport.send(operation, request, {
            headers,
            retry: shared.retry,
            caller: {},
            secrets,
          });
          return resultOf(operation, answer).body as never;
        } finally {
          await transport.close();
        }
      },
      call: async (id, parts, authorization) => {
        const operation: Operation = operations[id];
        const request = buildRequest(operation, parts as RequestParts);
        const answer = await this.#send(operation, request, {}, authorization);
        return (resultOf(operation, answer) as CallResult<typeof id>).body;
      },
    };
  }

  get url(): string {
    return this.#shared.transport.address;
  }

  async call<Id extends OperationId>(
    id: Id,
    ...[given, more]: RequestArguments<Id, CallOptions>
  ): Promise<CallResult<Id>> {
    const operation: Operation = operations[id];
    let parts = (given ?? {}) as RequestOf<Id>;
    let options: CallOptions = more ?? {};
    if (differs(id, parts)) {
      const { dialect } = await this.serverVersion();
      const client = this as ClientCore as Client;
      for (const { performs, changes } of dialect.differences) {
        if (performs?.[id]) return performs[id](client, parts, options);
        ({ parts, options } = changes?.[id]?.(parts, options, this.url) ?? { parts, options });
      }
    }
    const request = buildRequest(operation, parts as RequestParts);
    return resultOf(operation, await this.#authorized(operation, request, options)) as CallResult<Id>;
  }

  serverVersion(): Promise<ServerVersion> {
    return this.#shared.versions.get(this.url, () => serverVersionOf(this as ClientCore as Client));
  }

  async request<R extends z.ZodType | undefined>(
    operation: AnyOperation<R>,
    parts: RequestParts,
    options: CallOptions = {},
  ): Promise<RequestResult<R>> {
    const answer = await this.#authorized(operation, buildRequest(operation, parts), options);
    return resultOf(operation, answer) as RequestResult<R>;
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

  declaring(declaration: Declaration): Client {
    const declaredBy = declaredByText(declaration);
    return viewOf({ ...this.#shared, declaredBy, views: new Map() }, this.#tenant);
  }

  guarding(): Client {
    return viewOf({ ...this.#shared, isGuarded: true, views: new Map() }, this.#tenant);
  }

  checkingFirstWrite(check: () => Promise<WriteCondition | undefined>): Client {
    return viewOf({ ...this.#shared, firstWrite: new FirstWrite(check), views: new Map() }, this.#tenant);
  }

  witnessing(witness: (answer: WitnessedAnswer) => void): Client {
    return viewOf({ ...this.#shared, witness, views: new Map() }, this.#tenant);
  }

  identity(options: Pick<CallOptions, "signal"> = {}): Promise<Identity> {
    return abortable(() => this.#shared.authorizer.identity(this.#host, this.#tenant), options.signal);
  }

  async sessionToken(options: Pick<CallOptions, "signal"> = {}): Promise<string> {
    const authorize = () => this.#shared.authorizer.authorize(this.#host, this.#tenant);
    const authorization = await abortable(authorize, options.signal);
    if (authorization?.token !== undefined) return authorization.token;
    throw new ConfigurationError("An API key has no session token", {
      field: ["credential"],
      remedy: "use a user name and password, or a token",
    });
  }

  close(): Promise<void> {
    return this.#shared.transport.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #authorized(operation: Operation, request: WireRequest, given: CallOptions): Promise<Answer> {
    const ifMatch = given.ifMatch ?? (await this.#shared.firstWrite?.ifMatch(operation, request.path));
    const options = ifMatch === undefined ? given : { ...given, ifMatch };
    if (operation.auth.includes("none")) return this.#send(operation, request, options);
    const authorization = await this.#authorize(operation, request, options);
    try {
      return await this.#accepted(operation, request, options, authorization);
    } catch (error) {
      if (!this.#renewed(operation, authorization, error)) throw error;
      // A request that the server refused with 401 had no effect, so the client may repeat it with a new token.
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
    if (authorization.token !== undefined) this.#shared.authorizer.accepted?.(authorization.token);
    return answer;
  }

  /** True if the server refused the token and the request can be repeated with a different token. */
  #renewed(operation: Operation, { token }: Authorization, error: unknown): boolean {
    if (!(error instanceof AuthenticationError) || token === undefined) return false;
    const ofRequest = CODE_OPERATIONS.has(operation.id) && error.expiredAt === undefined;
    return !ofRequest && (this.#shared.authorizer.renew?.(this.#host, token) ?? false);
  }

  async #authorize(operation: Operation, request: WireRequest, options: CallOptions): Promise<Authorization> {
    const { signal } = options;
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
        () => this.#shared.authorizer.authorize(this.#host, this.#tenant),
        signal,
      );
    } catch (error) {
      if (!signal?.aborted || error !== signal.reason) throw error;
      throw new TransportError(
        "the caller aborted the request before it was sent",
        details,
        "aborted",
        error,
      );
    }
    if (authorization) return authorization;
    throw new AuthenticationError(
      "a credential is required. Set GATEHOUSE_API_KEY, GATEHOUSE_TOKEN, GATEHOUSE_OIDC, or both GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD",
      details,
    );
  }

  #send(
    operation: Operation,
    request: WireRequest,
    options: CallOptions,
    authorization?: Authorization,
  ): Promise<Answer> {
    const { transport, authorizer, retry, declaredBy, isGuarded, witness } = this.#shared;
    const { signal, idempotencyKey, ifMatch } = options;
    const token = authorization?.token;
    return transport.send(operation, request, {
      headers: {
        ...lowerCase(options.headers ?? {}),
        ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
        ...(ifMatch !== undefined && { "if-match": ifMatch }),
        ...(declaredBy !== undefined &&
          takesDeclaredBy(operation) && { [DECLARED_BY.toLowerCase()]: declaredBy }),
        ...(isGuarded && takesLockoutGuard(operation) && { [LOCKOUT_GUARD.toLowerCase()]: "on" }),
        ...authorization?.headers,
      },
      retry: { ...retry, ...options.retry },
      caller: authorizer.caller,
      secrets: [...authorizer.secrets(), ...(token === undefined ? [] : [token])],
      ...(signal && { signal }),
      ...(operation.method !== "GET" && operation.scope !== "public" && { onAnswer: witness }),
      ...(token !== undefined && { token }),
    });
  }
}

function resultOf({ success }: Operation, { status, headers, body }: Answer) {
  return { status, headers, body: success.body === undefined ? undefined : fromWire(success.body, body) };
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/**
 * Calls `start` and returns its result. If `signal` aborts first, rejects immediately with the reason of the signal.
 * The started work continues, because other callers may be waiting for its result.
 */
async function abortable<T>(start: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return start();
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    start()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", onAbort));
  });
}

const anonymous: Authorizer = {
  caller: {},
  knownTenant: undefined,
  authorize: async () => undefined,
  identity: async () => ({ kind: "anonymous" }),
  secrets: () => [],
};

function authorizerOf(address: string, credential: Credential | undefined): Authorizer {
  switch (credential?.kind) {
    case undefined:
      return anonymous;
    case "apiKey":
      return new ApiKeyAuthorizer(credential);
    case "token":
      return new UserSession(credential);
    case "password":
      return sharedSession(address, credential);
    case "workload":
      return new WorkloadAuthorizer(credential);
  }
}

// The methods of the operations are defined on the prototype, so that a new view does not define them again. The
// provider creates many views, one for each resource.
for (const id of Object.keys(operations) as OperationId[]) {
  Object.defineProperty(Core.prototype, id, {
    async value(this: Core, ...args: RequestArguments<typeof id, CallOptions>) {
      return (await this.call(id, ...args)).body;
    },
  });
}

function viewOf(shared: Shared, tenant: string | undefined): Client {
  let view = shared.views.get(tenant);
  if (!view) {
    view = new Core(shared, tenant) as ClientCore as Client;
    shared.views.set(tenant, view);
  }
  return view;
}

/**
 * Creates a client of one service. The client keeps connections open until it is closed or the process ends.
 * @throws ConfigurationError when the URL is not the URL of a service, or `ca` is not a certificate
 * @example
 * const client = createClient({ url: "https://gatehouse.example.com", credential: apiKeyCredential(key) });
 * const devices = await client.getDevices({ query: { filter: where("tags").contains(["prod"]) } });
 */
export function createClient(options: ClientOptions): Client {
  const { credential, retry, timing, serverVersion, ...rest } = options;
  const transport = new Transport({ ...DEFAULTS, ...rest, timing: { ...SYSTEM_TIMING, ...timing } });
  const versions = new PromiseCache<string, ServerVersion>();
  if (serverVersion !== undefined) versions.set(transport.address, Promise.resolve(versionOf(serverVersion)));
  return viewOf(
    {
      transport,
      authorizer: authorizerOf(transport.address, credential),
      retry: { ...DEFAULT_RETRY, ...retry },
      views: new Map(),
      declaredBy: undefined,
      isGuarded: false,
      firstWrite: undefined,
      witness: undefined,
      versions,
    },
    undefined,
  );
}
