import { ApiKeyTenant, type KeyCaller } from "./apiKeyTenant.ts";
import type { Credential } from "./credentials.ts";
import { readClaims } from "./jwt.ts";
import { type SessionHost, sharedSession, UserSession } from "./session.ts";

/** Who a client calls as. */
export interface Identity {
  readonly kind: Credential["kind"] | "anonymous";
  /** The namespace its calls are for. Absent for a user without one, and where the server hides it. */
  readonly tenant?: string;
  readonly userId?: string;
}

/** What proves the caller to the service. */
export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
  /** The JWT among the headers. */
  readonly token?: string;
}

/** What an authorizer may call; both go out without the authorizer's own work. */
export interface AuthorizerHost extends SessionHost {
  readonly callWithKey: KeyCaller;
}

/** Turns a credential into what a request carries. */
export interface Authorizer {
  /** The namespace of calls without another one, as far as it is known without a request. */
  readonly knownTenant: string | undefined;
  /** For requests of `tenant`, or of the credential's own namespace; undefined without a credential. */
  authorize(host: AuthorizerHost, tenant?: string): Promise<Authorization | undefined>;
  /** The server has taken `token`. */
  accepted(token: string): void;
  /** True when another authorization can be had than the refused `token`. */
  renew(host: AuthorizerHost, token: string): boolean;
  identity(host: AuthorizerHost, tenant?: string): Promise<Identity>;
  /** Values that no error may show. */
  secrets(): string[];
}

const anonymous: Authorizer = {
  knownTenant: undefined,
  authorize: async () => undefined,
  accepted: () => undefined,
  renew: () => false,
  identity: async () => ({ kind: "anonymous" }),
  secrets: () => [],
};

/** The authorizer of a credential for the service at `address`. */
export function authorizerOf(address: string, credential: Credential | undefined): Authorizer {
  if (!credential) {
    return anonymous;
  }
  if (credential.kind === "apiKey") {
    const key = credential.key.reveal();
    const tenants = new ApiKeyTenant();
    return {
      get knownTenant() {
        return tenants.known;
      },
      authorize: async (host, tenant) => {
        if (tenant !== undefined) {
          await tenants.require(tenant, host.callWithKey);
        }
        return { headers: { "x-api-key": key } };
      },
      accepted: () => undefined,
      renew: () => false,
      identity: async (host, wanted) => {
        const tenant = wanted ?? (await tenants.own(host.callWithKey));
        return { kind: "apiKey", ...(tenant !== undefined && { tenant }) };
      },
      secrets: () => [key],
    };
  }
  const session =
    credential.kind === "password" ? sharedSession(address, credential) : new UserSession(credential);
  return {
    get knownTenant() {
      return session.knownTenant;
    },
    authorize: async (host, tenant) => {
      const token = await session.token(host, tenant);
      return { headers: { authorization: `Bearer ${token}` }, token };
    },
    accepted: (token) => session.accepted(token),
    renew: (host, token) => session.renew(host, token),
    identity: async (host, wanted) => {
      const { tenant = undefined, userId = undefined } = readClaims(await session.token(host)) ?? {};
      const own = wanted ?? session.knownTenant ?? tenant;
      return {
        kind: credential.kind,
        ...(own !== undefined && { tenant: own }),
        ...(userId !== undefined && { userId }),
      };
    },
    secrets: () =>
      credential.kind === "password"
        ? [credential.password.reveal(), ...(credential.totpSecret ? [credential.totpSecret.reveal()] : [])]
        : [credential.token.reveal()],
  };
}
