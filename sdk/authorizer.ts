import { createHash } from "node:crypto";
import * as OTPAuth from "otpauth";
import type { Identity, OperationId, RequestOf, ResponseOf } from "./clientTypes.ts";
import {
  type ApiKeyCredential,
  expiredAt,
  type PasswordCredential,
  readClaims,
  type Secret,
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
import type { Timing } from "./retry.ts";

/** The headers that authenticate a request. */
export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  readonly token?: string;
}

/** The functions of a client that an {@link Authorizer} uses for its own requests, such as a login. */
export interface AuthorizerHost {
  readonly timing: Timing;
  /** Calls an operation with this authorization, or without one. The signal of a caller does not end the call. */
  call<Id extends OperationId>(
    id: Id,
    request: RequestOf<Id>,
    authorization?: Authorization,
  ): Promise<ResponseOf<Id>>;
}

/** Turns a credential into the {@link Authorization} of requests. */
export interface Authorizer {
  /** The namespace of calls that set no other one; undefined until it is known. */
  readonly knownTenant: string | undefined;
  /**
   * The authorization for requests in `tenant`. Default: the credential's own namespace. Undefined without a
   * credential.
   */
  authorize(host: AuthorizerHost, tenant?: string): Promise<Authorization | undefined>;
  /** Called when the server has accepted `token`. */
  accepted?(token: string): void;
  /** True if a new token can replace the refused `token`. */
  renew?(host: AuthorizerHost, token: string): boolean;
  /** The caller's identity in `tenant`. Default: the credential's own namespace. */
  identity(host: AuthorizerHost, tenant?: string): Promise<Identity>;
  /** Values that errors must not contain. */
  secrets(): string[];
}

/** Returns the kept promise for `key`, or starts a new one. A promise that fails is not kept. */
function keptUnlessFailed<T>(
  kept: Map<string, Promise<T>>,
  key: string,
  start: () => Promise<T>,
): Promise<T> {
  const known = kept.get(key);
  if (known) return known;
  const started = start().catch((error) => {
    kept.delete(key);
    throw error;
  });
  kept.set(key, started);
  return started;
}

/** Sends an API key, after it has checked that the key belongs to the namespace of the call. */
export class ApiKeyAuthorizer implements Authorizer {
  readonly #key: string;
  readonly #authorization: Authorization;
  #own: Promise<string | undefined> | undefined;
  #known: string | undefined;
  /** True if the server does not let a key list namespaces, as newer servers do not. */
  #listRefused = false;
  readonly #checked = new Map<string, Promise<boolean>>();

  constructor(credential: ApiKeyCredential) {
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

  /** The key's namespace; undefined if the server hides it from the key. */
  #ownTenant(host: AuthorizerHost): Promise<string | undefined> {
    this.#own ??= this.#findOwn(host).catch((error) => {
      this.#own = undefined;
      throw error;
    });
    return this.#own;
  }

  // The client refuses calls whose namespace it cannot check: a change in the wrong namespace would be worse.
  async #require(host: AuthorizerHost, tenant: string): Promise<void> {
    const own = await this.#ownTenant(host);
    const same = own === undefined ? this.#listRefused && (await this.#isOwn(host, tenant)) : own === tenant;
    if (same) return;
    throw new PermissionError(
      own === undefined
        ? `cannot check that the API key belongs to namespace ${tenant}; omit the namespace, or use a user's credential`
        : `the API key belongs to namespace ${own}, not to ${tenant}; use a key of that namespace, or a user's credential`,
      { operation: "forTenant", method: "GET", path: "/api/namespaces", outcome: "none", attempts: 0 },
    );
  }

  async #findOwn(host: AuthorizerHost): Promise<string | undefined> {
    try {
      const namespaces = await host.call("getNamespaces", { query: { perPage: 2 } }, this.#authorization);
      // Servers of 0.19 list every namespace of the instance to a key (rules D37), so a longer list identifies none.
      this.#known = namespaces.length === 1 ? namespaces[0]?.tenantId : undefined;
    } catch (error) {
      if (!(error instanceof PermissionError)) throw error;
      this.#listRefused = true;
    }
    this.#known ??= await this.#fromContent(host);
    return this.#known;
  }

  /**
   * Finds the namespace through a public key or a device. Both contain its id, and lists contain only objects of the
   * credential's namespace.
   */
  async #fromContent(host: AuthorizerHost): Promise<string | undefined> {
    const one = { query: { perPage: 1 } };
    const [key] = await host.call("getPublicKeys", one, this.#authorization);
    if (key) return key.tenantId;
    const [device] = await host.call("getDevices", one, this.#authorization);
    return device?.tenantId;
  }

  #isOwn(host: AuthorizerHost, tenant: string): Promise<boolean> {
    return keptUnlessFailed(this.#checked, tenant, () => this.#seesMembers(host, tenant));
  }

  /**
   * Checks the namespace through its members, for servers that do not let a key list namespaces. A key sees only the
   * members of its own namespace.
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

/** True if the server refused the login itself. Another try would bring the account closer to a lockout. */
function isRefusal(error: unknown): boolean {
  return [AuthenticationError, LockoutError, PermissionError, ValidationError].some(
    (kind) => error instanceof kind,
  );
}

/**
 * The tokens of one user, one for each namespace in use. The session logs in when it needs the first token. It logs
 * in again only when the server refuses a token, because the token has expired or because a new signing key or
 * password has invalidated it. After the server has refused a login, this process never tries it again, not even
 * after a lockout. All later calls fail with the error of that login: three wrong passwords lock the account (rules
 * section 9).
 */
export class UserSession implements Authorizer {
  readonly #credential: PasswordCredential | TokenCredential;
  #base: Promise<string> | undefined;
  #home: string | undefined;
  #refusal: unknown;
  readonly #byTenant = new Map<string, Promise<string>>();
  /** The tokens that this session got since the last login. */
  readonly #live = new Set<string>();
  /** The tokens of {@link #live} that the server has accepted. */
  readonly #accepted = new Set<string>();
  /** True if the last login replaced a token that was refused before it expired. */
  #early = false;

  constructor(credential: PasswordCredential | TokenCredential) {
    this.#credential = credential;
  }

  get knownTenant(): string | undefined {
    return this.#credential.kind === "token"
      ? readClaims(this.#credential.token.reveal())?.tenant
      : this.#home;
  }

  /**
   * Gets the token of another namespace once, in exchange for the user's token. The exchange also changes the user's
   * preferred namespace on the server (rules section 5.14), so a second exchange restores it.
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
   * True if the next authorization has another token than the refused one. An expired token is always replaced. A
   * token that is refused before it expires is replaced once; later tokens are replaced only if the server had
   * accepted them. Without this rule, a server that refuses every token would get a login with every call.
   */
  renew(host: AuthorizerHost, token: string): boolean {
    if (this.#credential.kind !== "password") return false;
    // A token that is not in the set was replaced by another call in the meantime.
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
          "the user has MFA: also set GATEHOUSE_TOTP_SECRET (SDK option: totpSecret)",
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
    return keptUnlessFailed(this.#byTenant, tenant, () => this.#exchange(host, base, tenant));
  }

  async #exchange(host: AuthorizerHost, base: string, tenant: string): Promise<string> {
    const { token } = await host.call("getNamespaceToken", { params: { tenant } }, bearer(base));
    const received = readClaims(token)?.tenant;
    if (received !== undefined && received !== tenant) {
      throw new GatehouseError({
        code: "wrong_namespace",
        detail: `requested a token of namespace ${tenant}, but the server returned a token of ${received}`,
      });
    }
    // If another call has replaced `base` in the meantime, the new token may be invalid as well.
    if (this.#live.has(base)) this.#live.add(token);
    await this.#preferHome(host, base, tenant);
    return token;
  }

  // The exchange made `tenant` the user's preferred namespace. Without a second exchange, every later login of the
  // user would be for `tenant`, and calls without a namespace would act on the wrong one.
  async #preferHome(host: AuthorizerHost, base: string, tenant: string): Promise<void> {
    const home = this.knownTenant;
    if (!home || home === tenant) return;
    try {
      await host.call("getNamespaceToken", { params: { tenant: home } }, bearer(base));
    } catch (error) {
      // A deleted namespace cannot be preferred, and no login can be for it.
      if (!isNotFound(error)) throw error;
    }
  }
}

const shared = new Map<string, UserSession>();

/**
 * The session of a user on a service. All clients of this process share it, so that one login serves all of them.
 * @param address without a trailing slash: another form of the address would create another session
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

const bearer = (token: string): Authorization => ({ headers: { authorization: `Bearer ${token}` }, token });

/** Seconds for which a code is valid (rules section 10). */
const STEP = 30;

/**
 * The last step in use, by hash of the secret. The map belongs to the process because the server counts codes per
 * user.
 */
const lastSteps = new Map<string, number>();

/**
 * The code of the current step, or of the next step if this process has already used the current one. A server
 * accepts each code only once.
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
