import { createHash } from "node:crypto";
import * as OTPAuth from "otpauth";
import type { z } from "zod";
import type { Camelized } from "./case.ts";
import type { AnyOperation, Identity, OperationId, RequestOf, ResponseOf } from "./clientTypes.ts";
import {
  type ApiKeyCredential,
  type Caller,
  expiredAt,
  type PasswordCredential,
  readClaims,
  type TokenCredential,
} from "./credentials.ts";
import {
  AuthenticationError,
  GatehouseError,
  isNotFound,
  LockoutError,
  NotFoundError,
  PermissionError,
  ValidationError,
} from "./errors.ts";
import { PromiseCache } from "./promises.ts";
import type { Timing } from "./retry.ts";
import type { Secret } from "./secret.ts";

/** The headers that authenticate a request. */
export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  readonly token?: string;
}

/** The functions of a client that an {@link Authorizer} uses to send its own requests, such as a login. */
export interface AuthorizerHost {
  /** Address of the service, without a trailing slash. */
  readonly address: string;
  readonly timing: Timing;
  /**
   * Calls an operation, and sends `authorization` with the request if it is set. The call continues even if the caller
   * of the client aborts its own call.
   */
  call<Id extends OperationId>(
    id: Id,
    request: RequestOf<Id>,
    authorization?: Authorization,
  ): Promise<ResponseOf<Id>>;
  /**
   * Sends a request to a different server, with the certificates and retry limits of the client. A redirect is an
   * error.
   */
  sendTo<R extends z.ZodType>(
    url: URL,
    operation: AnyOperation<R>,
    authorization: Authorization,
  ): Promise<Camelized<z.output<R>>>;
}

/** Turns a credential into the {@link Authorization} of requests. */
export interface Authorizer {
  readonly caller: Caller;
  /** The namespace for calls that do not set a namespace. Undefined until the client has determined the namespace. */
  readonly knownTenant: string | undefined;
  /**
   * Returns the authorization for requests in `tenant`. Without `tenant`, the requests are for the credential's own
   * namespace. Returns undefined if there is no credential.
   */
  authorize(host: AuthorizerHost, tenant?: string): Promise<Authorization | undefined>;
  /** Called when the server has accepted `token`. */
  accepted?(token: string): void;
  /** Called when the server has refused `token`. Returns true if the request can be repeated with a new token. */
  renew?(host: AuthorizerHost, token: string): boolean;
  /**
   * Returns the caller's identity in `tenant`. Without `tenant`, returns the identity in the credential's own
   * namespace.
   */
  identity(host: AuthorizerHost, tenant?: string): Promise<Identity>;
  /** Returns the secrets of the credential. Errors must not contain them. */
  secrets(): string[];
}

/** Authorizes requests with an API key, after a check that the key belongs to the namespace of the call. */
export class ApiKeyAuthorizer implements Authorizer {
  readonly caller: Caller;
  readonly #key: string;
  readonly #authorization: Authorization;
  /**
   * A cache with one entry: the namespace of the API key. The entry is stored under a constant, so the cache does not
   * contain the secret.
   */
  readonly #own = new PromiseCache<"own", string | undefined>();
  #known: string | undefined;
  /** True if the server refused to list namespaces for the API key, as newer servers do. */
  #listRefused = false;
  readonly #checked = new PromiseCache<string, boolean>();

  constructor(credential: ApiKeyCredential) {
    this.caller = { settings: credential.settings };
    this.#key = credential.key.reveal();
    this.#authorization = { headers: { "x-api-key": this.#key } };
  }

  get knownTenant(): string | undefined {
    return this.#known;
  }

  /**
   * Returns the header with the API key.
   * @throws PermissionError when `tenant` is not the key's namespace, or when the key's namespace cannot be
   * determined
   */
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

  /** Returns the key's namespace; undefined if the server does not reveal it to the key. */
  #ownTenant(host: AuthorizerHost): Promise<string | undefined> {
    return this.#own.get("own", () => this.#findOwn(host));
  }

  // Without this check, a call with an API key of a different namespace could change objects in that namespace.
  async #require(host: AuthorizerHost, tenant: string): Promise<void> {
    const own = await this.#ownTenant(host);
    const same = own === undefined ? this.#listRefused && (await this.#isOwn(host, tenant)) : own === tenant;
    if (same) return;
    throw new PermissionError(
      own === undefined
        ? `cannot verify that the API key belongs to namespace ${tenant}. Omit the namespace, or use a user's credential`
        : `the API key belongs to namespace ${own}, not to ${tenant}. Use a key of namespace ${tenant}, or a user's credential`,
      { operation: "forTenant", method: "GET", path: "/api/namespaces", outcome: "none", attempts: 0 },
    );
  }

  async #findOwn(host: AuthorizerHost): Promise<string | undefined> {
    try {
      const namespaces = await host.call("getNamespaces", { query: { perPage: 2 } }, this.#authorization);
      // Servers of version 0.19 return all namespaces of the instance for an API key (rules D37). A list of several
      // namespaces therefore does not identify the key's namespace.
      this.#known = namespaces.length === 1 ? namespaces[0]?.tenantId : undefined;
    } catch (error) {
      if (!(error instanceof PermissionError)) throw error;
      this.#listRefused = true;
    }
    this.#known ??= await this.#fromContent(host);
    return this.#known;
  }

  /**
   * Finds the namespace of the API key through a public key or a device, because both contain the id of their
   * namespace. The server lists only objects of the API key's namespace.
   */
  async #fromContent(host: AuthorizerHost): Promise<string | undefined> {
    const one = { query: { perPage: 1 } };
    const [key] = await host.call("getPublicKeys", one, this.#authorization);
    if (key) return key.tenantId;
    const [device] = await host.call("getDevices", one, this.#authorization);
    return device?.tenantId;
  }

  #isOwn(host: AuthorizerHost, tenant: string): Promise<boolean> {
    return this.#checked.get(tenant, () => this.#seesMembers(host, tenant));
  }

  /**
   * Checks whether an API key belongs to a namespace. Used for servers that refuse to list namespaces for an API key. A
   * server returns the members of a namespace only to an API key of that namespace.
   */
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

/**
 * True if the server refused a login or an exchange because of the credential. A repeated request would also fail, and
 * a repeated login would bring the user's account closer to a lockout.
 */
export function isRefusal(error: unknown): boolean {
  return [AuthenticationError, LockoutError, PermissionError, ValidationError].some(
    (kind) => error instanceof kind,
  );
}

/**
 * The tokens of one user, one for each namespace in use. The session logs in when it needs the first token, and logs in
 * again only when the server refuses a token. A server refuses a token that has expired, or that a new signing key or
 * password has invalidated. Three wrong passwords lock the account (rules section 9). After the server has refused a
 * login, this process therefore never repeats the login, not even after a lockout has ended. All later calls fail with
 * the error of the refused login.
 */
export class UserSession implements Authorizer {
  readonly #credential: PasswordCredential | TokenCredential;
  #base: Promise<string> | undefined;
  #home: string | undefined;
  #refusal: unknown;
  readonly #byTenant = new PromiseCache<string, string>();
  /** The current tokens: the token of the last login, and the tokens that this session received in exchange for it. */
  readonly #live = new Set<string>();
  /** The tokens in {@link #live} that the server has accepted at least once. */
  readonly #accepted = new Set<string>();
  /** True if the last login replaced a token that the server refused before the token expired. */
  #early = false;

  constructor(credential: PasswordCredential | TokenCredential) {
    this.#credential = credential;
  }

  get caller(): Caller {
    const { settings } = this.#credential;
    return this.#credential.kind === "token"
      ? { settings }
      : { username: this.#credential.username, settings };
  }

  get knownTenant(): string | undefined {
    return this.#credential.kind === "token"
      ? readClaims(this.#credential.token.reveal())?.tenant
      : this.#home;
  }

  /**
   * Returns the header with a token for `tenant`. For a namespace other than the user's own, the session exchanges the
   * user's token once. The exchange also changes the user's preferred namespace on the server (rules section 5.14), so
   * a second exchange restores the preferred namespace.
   */
  async authorize(host: AuthorizerHost, tenant?: string): Promise<Authorization> {
    return bearer(await this.#token(host, tenant));
  }

  async identity(host: AuthorizerHost, wanted?: string): Promise<Identity> {
    const claims = readClaims(await this.#token(host)) ?? {};
    const tenant = wanted ?? this.knownTenant ?? claims.tenant;
    return {
      kind: this.#credential.kind,
      ...(tenant !== undefined && { tenant }),
      ...(claims.userId !== undefined && { userId: claims.userId }),
    };
  }

  secrets(): string[] {
    const credential = this.#credential;
    if (credential.kind === "token") return [credential.token.reveal()];
    return [credential.password, credential.totpSecret].flatMap((secret) => secret?.reveal() ?? []);
  }

  async #token(host: AuthorizerHost, tenant?: string): Promise<string> {
    const base = await this.#baseToken(host);
    try {
      return await this.#tokenFor(host, base, tenant);
    } catch (error) {
      if (!(error instanceof AuthenticationError) || !this.renew(host, base)) throw error;
      return this.#tokenFor(host, await this.#baseToken(host), tenant);
    }
  }

  accepted(token: string): void {
    if (this.#live.has(token)) this.#accepted.add(token);
  }

  /**
   * Called when the server has refused `token`. Returns true if the next request uses a different token. An expired
   * token is always replaced. A token that was refused before its expiry is also replaced, with one exception: if the
   * server refuses two tokens in a row before their expiry, and never accepted the second token, the session keeps the
   * second token. Without this exception, a server that refuses every token would cause a login with every call.
   */
  renew(host: AuthorizerHost, token: string): boolean {
    if (this.#credential.kind !== "password") return false;
    // If the token is not in `#live`, a concurrent call has already replaced it.
    if (this.#live.has(token)) {
      const over = expiredAt(token, host.timing.now()) !== undefined;
      if (!over && this.#early && !this.#accepted.has(token)) return false;
      this.#early = !over;
      this.#base = undefined;
      this.#byTenant.clear();
      this.#live.clear();
      this.#accepted.clear();
    }
    return true;
  }

  #baseToken(host: AuthorizerHost): Promise<string> {
    if (this.#credential.kind === "token") return Promise.resolve(this.#credential.token.reveal());
    if (this.#refusal !== undefined) return Promise.reject(this.#refusal);
    this.#base ??= this.#logIn(host, this.#credential);
    return this.#base;
  }

  async #logIn(host: AuthorizerHost, credential: PasswordCredential): Promise<string> {
    try {
      const { token } = await this.#enter(host, credential);
      this.#home ??= readClaims(token)?.tenant;
      this.#live.add(token);
      return token;
    } catch (error) {
      this.#base = undefined;
      if (isRefusal(error)) this.#refusal = error;
      throw error;
    }
  }

  async #enter(host: AuthorizerHost, credential: PasswordCredential): Promise<{ token: string }> {
    const { username, password, totpSecret } = credential;
    let mfaToken: string;
    try {
      return await host.call("login", { body: { username, password: password.reveal() } });
    } catch (error) {
      if (!(error instanceof AuthenticationError) || error.mfaToken === undefined) throw error;
      if (!totpSecret) {
        throw new AuthenticationError(
          "the user has MFA, so GATEHOUSE_TOTP_SECRET (SDK option: totpSecret) is also required",
          error,
          { cause: error },
        );
      }
      mfaToken = error.mfaToken;
    }
    const code = await nextTotpCode(totpSecret, host.timing);
    return host.call("authMfa", { body: { token: mfaToken, code } });
  }

  #tokenFor(host: AuthorizerHost, base: string, tenant = this.#home): Promise<string> {
    if (tenant === undefined || readClaims(base)?.tenant === tenant) return Promise.resolve(base);
    return this.#byTenant.get(tenant, () => this.#exchange(host, base, tenant));
  }

  async #exchange(host: AuthorizerHost, base: string, tenant: string): Promise<string> {
    const { token } = await host.call("getNamespaceToken", { params: { tenant } }, bearer(base));
    requireNamespace(readClaims(token)?.tenant, tenant);
    // If a concurrent call has discarded `base` during the exchange, the server may also refuse the exchanged token. In
    // this case, the token is not added to `#live`.
    if (this.#live.has(base)) this.#live.add(token);
    await this.#preferHome(host, base, tenant);
    return token;
  }

  // Restores the user's preferred namespace, which the exchange changed to `tenant`. Otherwise every later login of the
  // user would select `tenant`, and calls without a namespace would act on the wrong namespace.
  async #preferHome(host: AuthorizerHost, base: string, tenant: string): Promise<void> {
    const home = this.knownTenant;
    if (!home || home === tenant) return;
    try {
      await host.call("getNamespaceToken", { params: { tenant: home } }, bearer(base));
    } catch (error) {
      // Ignore a 404: the namespace was deleted, so it can no longer be the user's preferred namespace.
      if (!isNotFound(error)) throw error;
    }
  }
}

const shared = new Map<string, UserSession>();

/**
 * Returns the session of a user on a service. All clients in this process share the session, so that one login is
 * enough.
 * @param address the address without a trailing slash, because a different spelling of the address would create a
 *   second session
 */
export function sharedSession(address: string, credential: PasswordCredential): UserSession {
  const { username, password, totpSecret } = credential;
  const parts = [address, username, password.reveal(), totpSecret?.reveal() ?? ""];
  const id = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  let session = shared.get(id);
  if (!session) {
    session = new UserSession(credential);
    shared.set(id, session);
  }
  return session;
}

/**
 * Checks the namespace of a token that the server returned.
 * @throws GatehouseError when the token is for a different namespace
 */
export function requireNamespace(received: string | undefined, requested: string): void {
  if (received === undefined || received === requested) return;
  throw new GatehouseError({
    code: "wrong_namespace",
    detail: `requested a token of namespace ${requested}, but the server returned a token of ${received}`,
  });
}

/** Returns the authorization of requests with a token. */
export const bearer = (token: string): Authorization => ({
  headers: { authorization: `Bearer ${token}` },
  token,
});

/** Validity of a TOTP code, in seconds (rules section 10). */
const STEP = 30;

/**
 * The time step of the last TOTP code that was used, by hash of the secret. All sessions of the process share the map,
 * because the server accepts each code of a user only once.
 */
const lastSteps = new Map<string, number>();

/**
 * Returns the TOTP code of the current time step. If this process has already used the code of this time step, the
 * function waits for the next time step, because a server accepts each code only once.
 */
async function nextTotpCode(secret: Secret, timing: Pick<Timing, "now" | "sleep">): Promise<string> {
  const id = createHash("sha256").update(secret.reveal()).digest("hex");
  for (;;) {
    const now = timing.now();
    const step = Math.floor(now / 1000 / STEP);
    const last = lastSteps.get(id);
    if (last === undefined || step > last) {
      lastSteps.set(id, step);
      const totp = new OTPAuth.TOTP({ secret: OTPAuth.Secret.fromBase32(secret.reveal()), period: STEP });
      return totp.generate({ timestamp: now });
    }
    await timing.sleep((last + 1) * STEP * 1000 - now);
  }
}
