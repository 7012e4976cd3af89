import type { Operation, Role } from "@gatehouse-access/sdk/contract";

export interface UserToken {
  /** Its id, `jti`. */
  readonly id: string;
  /** When it ends. */
  readonly endsAt: Date;
  /** True if the token survived the change of password that it made, which ended all others. It is not renewed. */
  readonly isKept: boolean;
}

export interface UserCaller {
  readonly kind: "user";
  readonly userId: string;
  readonly username: string;
  /** The user's token version when the token was accepted; once the user has a newer version, the token is void. */
  readonly tokenVersion: number;
  /** Null if something other than a token has authenticated the user. */
  readonly token: UserToken | null;
  /** The token's namespace; empty if it has none. */
  readonly tenant: string;
  /** The user's present role in that namespace; null without one. */
  readonly role: Role | null;
}

/** An API key; it belongs to one namespace and to no user. */
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
  /** Whether the token was given for a proof of the device's private key. */
  readonly proven: boolean;
  /** Whether the token's time is over; then it only opens tunnels and has logins signed. */
  readonly expired: boolean;
}

/** The authenticated sender of a request. */
export type Caller = UserCaller | KeyCaller | DeviceCaller;

interface CallerKinds {
  none: never;
  jwt: UserCaller;
  apikey: KeyCaller;
  device: DeviceCaller;
  internal: never;
}

/** A caller with the operation's namespace, and the caller's role in it. */
export interface Member<C extends Caller = Caller> {
  readonly caller: C;
  readonly tenant: string;
  readonly role: Role;
}

/** The namespace that a trusted service asks about; it may not exist. */
export interface NamedTenant {
  readonly tenant: string;
}

type CallerOf<O extends Operation> = CallerKinds[O["auth"][number]];

/** The identity that a handler gets, by the operation's scope and credentials. */
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
          : Member<CallerOf<O>>;
