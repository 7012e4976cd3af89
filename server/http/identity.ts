import type { Operation, Role } from "@gatehouse-access/sdk/contract";

/** The token of a user. */
export interface UserToken {
  /** Its id, `jti`. */
  readonly id: string;
  /** When it ends. */
  readonly endsAt: Date;
  /** It made the change that ended the user's others. It is not renewed. */
  readonly isKept: boolean;
}

/** A user who sent a token of its own. */
export interface UserCaller {
  readonly kind: "user";
  readonly userId: string;
  readonly username: string;
  /** The user's token version when the token was accepted: once the user has another one, the token is void. */
  readonly tokenVersion: number;
  /** Null where something else than a token has shown who it is. */
  readonly token: UserToken | null;
  /** The token's namespace, empty without one. */
  readonly tenant: string;
  /** The user's present role there; null without a namespace. */
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
}

export type Caller = UserCaller | KeyCaller | DeviceCaller;

interface CallerKinds {
  none: never;
  jwt: UserCaller;
  apikey: KeyCaller;
  device: DeviceCaller;
  internal: never;
}

/** A caller with the namespace that the operation is about, and its role there. */
export interface Member<C extends Caller = Caller> {
  readonly caller: C;
  readonly tenant: string;
  readonly role: Role;
}

/** The namespace that a trusted service asks about; that there is one is not said. */
export interface NamedTenant {
  readonly tenant: string;
}

type CallerOf<O extends Operation> = CallerKinds[O["auth"][number]];

/** What a handler knows of the caller, by the operation's scope and credentials. */
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
