import { createHash } from "node:crypto";
import type { PasswordCredential, TokenCredential } from "./credentials.ts";
import {
  AuthenticationError,
  GatehouseError,
  isNotFound,
  LockoutError,
  PermissionError,
  ValidationError,
} from "./errors.ts";
import { expiredAt, readClaims } from "./jwt.ts";
import type { OperationId, RequestOf, ResponseOf } from "./operations.ts";
import type { Timing } from "./retry.ts";
import { nextTotpCode } from "./totp.ts";

/** Calls an operation with the given token, or with none. */
export type Caller = <Id extends OperationId>(
  id: Id,
  request: RequestOf<Id>,
  token?: string,
) => Promise<ResponseOf<Id>>;

/** What a session needs of the client that asks it for a token. */
export interface SessionHost {
  readonly call: Caller;
  readonly timing: Timing;
}

/** The login was answered with "no": asking again would bring the account closer to its lock. */
function isRefusal(error: unknown): boolean {
  return [AuthenticationError, LockoutError, PermissionError, ValidationError].some(
    (kind) => error instanceof kind,
  );
}

/**
 * The tokens of one user: one for each namespace that is asked for. Logs in when the first one is needed,
 * and again only when the server refuses a token: its time is over, or another signing key or password made it
 * void before. A login that was answered with "no" is not tried again as long as the process lives, also not
 * after a lockout: its error is given to everyone who asks (three wrong ones lock the account, rules section 9).
 */
export class UserSession {
  readonly #credential: PasswordCredential | TokenCredential;
  #base: Promise<string> | undefined;
  #home: string | undefined;
  #refusal: unknown;
  readonly #byTenant = new Map<string, Promise<string>>();
  /** Tokens given out since the last login. */
  readonly #live = new Set<string>();
  /** Those of them that the server has taken. */
  readonly #taken = new Set<string>();
  /** The last login replaced a token that was refused before its time was over. */
  #early = false;

  constructor(credential: PasswordCredential | TokenCredential) {
    this.#credential = credential;
  }

  /** The namespace whose token is known without a request, if any. */
  get knownTenant(): string | undefined {
    return this.#credential.kind === "token"
      ? readClaims(this.#credential.token.reveal())?.tenant
      : this.#home;
  }

  /**
   * A token for `tenant`, or for the namespace of the first login. Another namespace's token is exchanged
   * for once. That makes it the user's preferred one on the server (rules section 5.14) for a moment: a second
   * exchange makes the home preferred again.
   */
  async token(host: SessionHost, tenant?: string): Promise<string> {
    const base = await this.#baseToken(host);
    try {
      return await this.#tokenFor(host, base, tenant);
    } catch (error) {
      if (!(error instanceof AuthenticationError) || !this.renew(host, base)) {
        throw error;
      }
      return this.#tokenFor(host, await this.#baseToken(host), tenant);
    }
  }

  /** The server has taken `token`. */
  accepted(token: string): void {
    if (this.#live.has(token)) {
      this.#taken.add(token);
    }
  }

  /**
   * True when the next {@link token} is another one than `token`, which the server refused. Before its time is
   * over a token is given up once; its successors only after the server took them. Else a server that refuses
   * them all would be sent a login with every call.
   */
  renew(host: SessionHost, token: string): boolean {
    if (this.#credential.kind !== "password") {
      return false;
    }
    // Not among the live ones: someone else has renewed it meanwhile.
    if (this.#live.has(token)) {
      const over = expiredAt(token, host.timing.now()) !== undefined;
      if (!over && this.#early && !this.#taken.has(token)) {
        return false;
      }
      this.#early = !over;
      this.#base = undefined;
      this.#byTenant.clear();
      this.#live.clear();
      this.#taken.clear();
    }
    return true;
  }

  #baseToken(host: SessionHost): Promise<string> {
    if (this.#credential.kind === "token") {
      return Promise.resolve(this.#credential.token.reveal());
    }
    if (this.#refusal !== undefined) {
      return Promise.reject(this.#refusal);
    }
    this.#base ??= this.#logIn(host, this.#credential);
    return this.#base;
  }

  async #logIn(host: SessionHost, credential: PasswordCredential): Promise<string> {
    try {
      const { token } = await this.#enter(host, credential);
      this.#home ??= readClaims(token)?.tenant;
      this.#live.add(token);
      return token;
    } catch (error) {
      this.#base = undefined;
      if (isRefusal(error)) {
        this.#refusal = error;
      }
      throw error;
    }
  }

  async #enter(host: SessionHost, credential: PasswordCredential): Promise<{ token: string }> {
    const { username, password, totpSecret } = credential;
    let mfaToken: string;
    try {
      return await host.call("login", { body: { username, password: password.reveal() } });
    } catch (error) {
      if (!(error instanceof AuthenticationError) || error.mfaToken === undefined) {
        throw error;
      }
      if (!totpSecret) {
        throw new AuthenticationError(
          "the user has MFA: set GATEHOUSE_TOTP_SECRET (or totpSecret) as well",
          error,
          { cause: error },
        );
      }
      mfaToken = error.mfaToken;
    }
    const code = await nextTotpCode(totpSecret, host.timing);
    return host.call("authMfa", { body: { token: mfaToken, code } });
  }

  #tokenFor(host: SessionHost, base: string, tenant = this.#home): Promise<string> {
    if (tenant === undefined || readClaims(base)?.tenant === tenant) {
      return Promise.resolve(base);
    }
    let token = this.#byTenant.get(tenant);
    if (!token) {
      token = this.#exchange(host, base, tenant);
      this.#byTenant.set(tenant, token);
    }
    return token;
  }

  async #exchange(host: SessionHost, base: string, tenant: string): Promise<string> {
    try {
      const { token } = await host.call("getNamespaceToken", { params: { tenant } }, base);
      const given = readClaims(token)?.tenant;
      if (given !== undefined && given !== tenant) {
        throw new GatehouseError(`asked for a token of namespace ${tenant}, the server gave one of ${given}`);
      }
      // Exchanged for with a token that was given up meanwhile: it may be void as well.
      if (this.#live.has(base)) {
        this.#live.add(token);
      }
      await this.#preferHome(host, base, tenant);
      return token;
    } catch (error) {
      this.#byTenant.delete(tenant);
      throw error;
    }
  }

  // The exchange made `tenant` the user's preferred namespace: the next login, of anybody, would land there,
  // and calls that name no namespace would act on the wrong one.
  async #preferHome(host: SessionHost, base: string, tenant: string): Promise<void> {
    const home = this.knownTenant;
    if (!home || home === tenant) return;
    try {
      await host.call("getNamespaceToken", { params: { tenant: home } }, base);
    } catch (error) {
      // A home that is gone can not be preferred, and no login lands there.
      if (!isNotFound(error)) throw error;
    }
  }
}

const shared = new Map<string, UserSession>();

/**
 * The session of a user on a service, the same one for every client of this process: one login serves all.
 * @param address of the service, without a trailing slash
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
