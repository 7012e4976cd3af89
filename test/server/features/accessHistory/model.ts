import type { Role } from "@gatehouse-access/sdk/contract";

/** Rules section 4, weakest first. */
const LEVELS: readonly Role[] = ["observer", "operator", "administrator", "owner"];
export const rank = (role: Role): number => LEVELS.indexOf(role);
/** The next higher role; undefined above the owner. */
export const above = (role: Role): Role | undefined => LEVELS[rank(role) + 1];

const MINUTE = 60;
/** Life of a user's token (rules section 2). */
const TOKEN_LIFE = 259_200;
/** Of one that changed the password (rules D48). */
const KEPT_LIFE = 3600;

/** Wrong passwords in a row (rules section 9); times are unix seconds. */
interface Failures {
  readonly attempts: number;
  readonly lockedUntil: number;
  readonly forgotten: number;
}
export type Counter = "login" | "password";

export interface User {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  password: string;
  /** How often it was changed. */
  version: number;
  /** The token that changed it last, with those made from that: they live on for a while. */
  kept: { readonly family: number; readonly until: number } | null;
  preferred: string | null;
  readonly failures: Map<Counter, Failures>;
}

export interface Place {
  readonly tenant: string;
  readonly members: Map<User, { role: Role; readonly since: number }>;
  /** By name. */
  readonly keys: Map<string, { role: Role }>;
}

export interface Token {
  readonly kind: "token";
  readonly secret: string;
  readonly user: User;
  readonly tenant: string;
  /** Null: made from a kept one. */
  readonly version: number | null;
  /** The same for those that were made from a kept one. */
  readonly family: number;
  readonly expires: number;
}

export interface Key {
  readonly kind: "key";
  readonly secret: string;
  readonly tenant: string;
  readonly name: string;
  readonly expires: number;
}

export type Credential = Token | Key;

/** What a living credential may do: its role in its namespace; null without a namespace. */
export interface Standing {
  readonly role: Role | null;
}

/** Who may do what, as the rules say, in memory. It knows nothing of the service. */
export class Model {
  now: number;
  readonly users: readonly User[];
  readonly places: readonly Place[];
  /** Every one that was ever handed out. */
  readonly credentials: Credential[] = [];
  /** The name of every key that was ever made. */
  readonly keyNames: string[] = [];

  constructor(now: number, users: readonly User[], places: readonly Place[]) {
    this.now = now;
    this.users = users;
    this.places = places;
  }

  place(tenant: string): Place | undefined {
    return this.places.find((place) => place.tenant === tenant);
  }

  /** @param from the token that it was made from; null: a password */
  addToken(user: User, tenant: string, secret: string, from: Token | null): void {
    const isKept = from !== null && from.version !== user.version;
    const version = isKept ? null : user.version;
    const family = isKept ? from.family : this.credentials.length;
    const expires = isKept ? this.endOf(from) : this.now + TOKEN_LIFE;
    this.credentials.push({ kind: "token", secret, user, tenant, version, family, expires });
  }

  /** When a token ends; in the past for one that is void. Rules D48. */
  endOf({ user, version, family, expires }: Token): number {
    if (version === user.version) return expires;
    return user.kept?.family === family ? Math.min(expires, user.kept.until) : 0;
  }

  /** A token gives its user a new password. */
  changePassword(user: User, password: string, by: Token): void {
    const until = Math.min(this.endOf(by), this.now + KEPT_LIFE);
    user.kept = { family: by.family, until };
    user.password = password;
    user.version += 1;
  }

  /** Null: the credential is worth nothing (rules sections 1 and 15.7). */
  standing(credential: Credential): Standing | null {
    const place = this.place(credential.tenant);
    if (credential.kind === "key") {
      const key = place?.keys.get(credential.name);
      return key === undefined || this.now >= credential.expires ? null : { role: key.role };
    }
    if (this.now >= this.endOf(credential)) return null;
    if (credential.tenant === "") return { role: null };
    const member = place?.members.get(credential.user);
    return member === undefined ? null : { role: member.role };
  }

  /** True for a credential that is worth nothing whatever happens: it has expired, or was ended or deleted. */
  isDead(credential: Credential): boolean {
    if (credential.kind === "key") return this.standing(credential) === null;
    return this.now >= this.endOf(credential);
  }

  /** Namespaces that a new token of the user may be for: several when it became a member of them at once (rules 5.14). */
  homesOf(user: User): string[] {
    const mine = this.places.filter((place) => place.members.has(user));
    if (mine.some((place) => place.tenant === user.preferred)) return [user.preferred ?? ""];
    const first = Math.min(...mine.map((place) => place.members.get(user)?.since ?? 0));
    const homes = mine.filter((place) => place.members.get(user)?.since === first);
    return homes.length === 0 ? [""] : homes.map((place) => place.tenant);
  }

  isLocked(user: User, counter: Counter): boolean {
    return (user.failures.get(counter)?.lockedUntil ?? 0) > this.now;
  }

  /** Counts a wrong password; true when it brings a lock. */
  countFailure(user: User, counter: Counter): boolean {
    const known = user.failures.get(counter);
    const attempts = (known && known.forgotten > this.now ? known.attempts : 0) + 1;
    const lock = attempts < 3 ? 0 : Math.min(4 ** (attempts - 3), 60);
    const kept = Math.max(2, Math.floor(Math.min(2.5 * lock, 60)));
    user.failures.set(counter, {
      attempts,
      lockedUntil: lock === 0 ? 0 : this.now + lock * MINUTE,
      forgotten: this.now + kept * MINUTE,
    });
    return lock > 0;
  }
}
