import type { Identity, OperationId, RequestOf, ResponseOf } from "./clientTypes.ts";
import type { ApiKeyCredential } from "./credentials.ts";
import { NotFoundError, PermissionError } from "./errors.ts";
import type { Timing } from "./retry.ts";

/** What a request carries to prove who sends it. */
export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  /** The JWT among the headers. */
  readonly token?: string;
}

/** What an {@link Authorizer} needs of its client for requests of its own, such as a login. */
export interface AuthorizerHost {
  readonly timing: Timing;
  /** Calls an operation with this authorization, or with none; no caller's signal ends it. */
  call<Id extends OperationId>(
    id: Id,
    request: RequestOf<Id>,
    authorization?: Authorization,
  ): Promise<ResponseOf<Id>>;
}

/** Turns a credential into the {@link Authorization} of requests. */
export interface Authorizer {
  /** The namespace of calls without another one, as far as it is known without a request. */
  readonly knownTenant: string | undefined;
  /** For requests of `tenant`, or of the credential's own namespace; undefined without a credential. */
  authorize(host: AuthorizerHost, tenant?: string): Promise<Authorization | undefined>;
  /** Told when the server has taken `token`. */
  accepted?(token: string): void;
  /** True when another authorization can be had than the refused `token`. */
  renew?(host: AuthorizerHost, token: string): boolean;
  /** Who the credential is, in `tenant` or in its own namespace. */
  identity(host: AuthorizerHost, tenant?: string): Promise<Identity>;
  /** Values that no error may show. */
  secrets(): string[];
}

/**
 * Sends an API key, after it made sure that the key belongs to the namespace that a call is for. A key does not say
 * which one that is: it is found out by requests, each of which is made once.
 */
export class ApiKeyAuthorizer implements Authorizer {
  readonly #key: string;
  readonly #authorization: Authorization;
  #own: Promise<string | undefined> | undefined;
  #known: string | undefined;
  /** The server does not let a key list namespaces, as newer ones. */
  #listRefused = false;
  readonly #checked = new Map<string, Promise<boolean>>();

  constructor(credential: ApiKeyCredential) {
    this.#key = credential.key.reveal();
    this.#authorization = { headers: { "x-api-key": this.#key } };
  }

  get knownTenant(): string | undefined {
    return this.#known;
  }

  /** @throws PermissionError when `tenant` is not the key's namespace, or that cannot be told */
  async authorize(host: AuthorizerHost, tenant?: string): Promise<Authorization> {
    if (tenant !== undefined) await this.#require(host, tenant);
    return this.#authorization;
  }

  async identity(host: AuthorizerHost, wanted?: string): Promise<Identity> {
    const tenant = wanted ?? (await this.#ownTenant(host));
    return { kind: "apiKey", ...(tenant !== undefined && { tenant }) };
  }

  secrets(): string[] {
    return [this.#key];
  }

  /** The key's namespace; undefined when the server does not let the key see it. */
  #ownTenant(host: AuthorizerHost): Promise<string | undefined> {
    this.#own ??= this.#findOwn(host).catch((error) => {
      this.#own = undefined;
      throw error;
    });
    return this.#own;
  }

  // A call that cannot be told to be in the right namespace is refused: a change in the wrong one is worse.
  async #require(host: AuthorizerHost, tenant: string): Promise<void> {
    const own = await this.#ownTenant(host);
    const same = own === undefined ? this.#listRefused && (await this.#isOwn(host, tenant)) : own === tenant;
    if (same) return;
    throw new PermissionError(
      own === undefined
        ? `namespace ${tenant} is not known to be the one of the API key; leave it out, or use a user's credential`
        : `the API key belongs to namespace ${own}, not to ${tenant}; use a key of that namespace, or a user's credential`,
      { operation: "forTenant", method: "GET", path: "/api/namespaces", outcome: "none", attempts: 0 },
    );
  }

  async #findOwn(host: AuthorizerHost): Promise<string | undefined> {
    try {
      const namespaces = await host.call("getNamespaces", { query: { perPage: 2 } }, this.#authorization);
      // Servers of 0.19 list every namespace of the instance to a key (rules D37): that tells nothing.
      this.#known = namespaces.length === 1 ? namespaces[0]?.tenantId : undefined;
    } catch (error) {
      if (!(error instanceof PermissionError)) throw error;
      this.#listRefused = true;
    }
    this.#known ??= await this.#fromContent(host);
    return this.#known;
  }

  /** Every key and device names its namespace, and lists hold those of the credential's namespace only. */
  async #fromContent(host: AuthorizerHost): Promise<string | undefined> {
    const one = { query: { perPage: 1 } };
    const [key] = await host.call("getPublicKeys", one, this.#authorization);
    if (key) return key.tenantId;
    const [device] = await host.call("getDevices", one, this.#authorization);
    return device?.tenantId;
  }

  #isOwn(host: AuthorizerHost, tenant: string): Promise<boolean> {
    let answer = this.#checked.get(tenant);
    if (!answer) {
      answer = this.#seesMembers(host, tenant).catch((error) => {
        this.#checked.delete(tenant);
        throw error;
      });
      this.#checked.set(tenant, answer);
    }
    return answer;
  }

  /** Where a key can not list namespaces, it sees the members of its own namespace only. */
  async #seesMembers(host: AuthorizerHost, tenant: string): Promise<boolean> {
    try {
      const { members } = await host.call("getNamespace", { params: { tenant } }, this.#authorization);
      return members.length > 0;
    } catch (error) {
      if (error instanceof PermissionError || error instanceof NotFoundError) return false;
      throw error;
    }
  }
}
