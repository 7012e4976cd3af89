import type { Operation, Role } from "@gatehouse-access/sdk/contract";

export interface UserToken {
  /** The token's id, `jti`. */
  readonly id: string;
  /** Expiry time of the token. */
  readonly endsAt: Date;
  /**
   * True if the user changed the password with this token. The change invalidated the user's other tokens, but not this
   * token. The service does not renew such a token.
   */
  readonly isKept: boolean;
}

export interface UserCaller {
  readonly kind: "user";
  readonly userId: string;
  readonly username: string;
  /**
   * The token version of the user when the token was accepted. The token becomes invalid when the user's token version
   * increases.
   */
  readonly tokenVersion: number;
  /** The user's token. Null if a different credential authenticated the user. */
  readonly token: UserToken | null;
  /** The token's namespace; empty if the token has no namespace. */
  readonly tenant: string;
  /** The user's current role in that namespace. Null if the user has no role. */
  readonly role: Role | null;
}

/** An API key. An API key has one namespace and no user. */
export interface KeyCaller {
  readonly kind: "apikey";
  readonly name: string;
  readonly tenant: string;
  readonly role: Role;
}

/** A device's agent. */
export interface DeviceCaller {
  readonly kind: "device";
  readonly tenant: string;
  readonly uid: string;
  /** True if the agent received the token after it proved that it has the device's private key. */
  readonly proven: boolean;
  /**
   * True if the token has expired. With an expired token, the agent can only open tunnels and request signatures for
   * logins.
   */
  readonly expired: boolean;
}

/** The session of a trusted workload. */
export interface WorkloadCaller {
  readonly kind: "workload";
  readonly workloadId: string;
  /** Name of the running job in the audit trail. It comes from the claims of the exchanged token. */
  readonly name: string;
  readonly tenant: string;
  /** The current role of the workload. */
  readonly role: Role;
  /** Digest of the rules that the exchanged token matched. */
  readonly rules: string;
  /** Time of issue of the exchanged token. */
  readonly startedAt: Date;
}

/** The authenticated sender of a request. */
export type Caller = UserCaller | KeyCaller | DeviceCaller | WorkloadCaller;

/** Returns the id of the user or workload that creates an object. */
export const actorIdOf = (caller: UserCaller | WorkloadCaller): string =>
  caller.kind === "user" ? caller.userId : caller.workloadId;

interface CallerKinds {
  none: never;
  jwt: UserCaller;
  apikey: KeyCaller;
  device: DeviceCaller;
  workload: WorkloadCaller;
  internal: never;
}

/** A caller, the operation's namespace, and the caller's role in that namespace. */
export interface Member<C extends Caller = Caller> {
  readonly caller: C;
  readonly tenant: string;
  readonly role: Role;
}

/** The namespace that a request of a trusted service specifies. The namespace may not exist. */
export interface NamedTenant {
  readonly tenant: string;
}

type CallerOf<O extends Operation> = CallerKinds[O["auth"][number]];

/** The callers of an operation on a namespace. An operation that accepts users' tokens also accepts workloads. */
type NamespaceCallerOf<O extends Operation> =
  | CallerOf<O>
  | ("jwt" extends O["auth"][number] ? WorkloadCaller : never);

/** The identity that a handler receives. Its type depends on the operation's scope and credentials. */
export type IdentityOf<O extends Operation> = O["scope"] extends "public" | "internal"
  ? null
  : O["scope"] extends "user"
    ? CallerOf<O>
    : O["scope"] extends "device" | "session"
      ? DeviceCaller | Member<UserCaller | KeyCaller>
      : O["scope"] extends "forwarded"
        ? Caller
        : O["scope"] extends "tenant"
          ? NamedTenant
          : Member<NamespaceCallerOf<O>>;

/**
 * Returns the owner of a sender's lists: the namespace, or the user if the credential has no namespace. The service
 * schedules lists by owner.
 */
export function ownerOf(identity: Caller | Member | NamedTenant): string {
  const { tenant } = identity;
  return tenant === "" && "userId" in identity ? `user ${identity.userId}` : tenant;
}
