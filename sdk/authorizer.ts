import type { Credential } from "./credentials.ts";
import type { OperationId, RequestOf, ResponseOf } from "./operations.ts";
import type { Timing } from "./retry.ts";

/** Who a client calls as. */
export interface Identity {
  readonly kind: Credential["kind"] | "anonymous";
  /** The namespace its calls are for. Absent for a user without one, and where the server hides it. */
  readonly tenant?: string;
  readonly userId?: string;
}

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
