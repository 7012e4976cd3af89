import type { Role } from "@gatehouse-access/sdk/contract";

/** Rules section 4, weakest first. */
const LEVELS: readonly Role[] = ["observer", "operator", "administrator", "owner"];
export const rank = (role: Role): number => LEVELS.indexOf(role);
/** The next higher role; undefined above the owner. */
export const above = (role: Role): Role | undefined => LEVELS[rank(role) + 1];

const MINUTE = 60;
/** Life of a user's token (rules section 2). */
const TOKEN_LIFE = 259_200;
/** Life of a token that changed the password (rules D48). */
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
  /** The number of password changes. */
  version: number;
  /** The token that last changed the password, and the tokens created from it, stay valid for a while. */
  kept: { readonly family: number; readonly until: number } | null;
  preferred: string | null;
  readonly failures: Map<Counter, Failures>;
}

export interface Place {
  readonly tenant: string;
  readonly members: Map<User, { role: Role; readonly since: number }>;
  /** Keys by name. */
  readonly keys: Map<string, { role: Role }>;
}

export interface Token {
  readonly kind: "token";
  readonly secret: string;
  readonly user: User;
  readonly tenant: string;
  /** The password version; null: created from a kept token. */
  readonly version: number | null;
  /** Tokens created from a kept token have the same family. */
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

/** The permissions of a valid credential: its role in its namespace; null without a namespace. */
export interface Standing {
  readonly role: Role | null;
}

/** A model of the rules in memory: it computes the permissions of every credential. It does not use the service. */
export class Model {
  now: number;
  readonly users: readonly User[];
  readonly places: readonly Place[];
  /** Every credential that was ever issued. */
  readonly credentials: Credential[] = [];
  /** The name of every key that was ever created. */
  readonly keyNames: string[] = [];

  constructor(now: number, users: readonly User[], places: readonly Place[]) {
    this.now = now;
    this.users = users;
    this.places = places;
  }

  place(tenant: string): Place | undefined {
    return this.places.find((place) => place.tenant === tenant);
  }

  /** @param from the token that it was created from; null: a password */
  addToken(user: User, tenant: string, secret: string, from: Token | null): void {
    const isKept = from !== null && from.version !== user.version;
    const version = isKept ? null : user.version;
    const family = isKept ? from.family : this.credentials.length;
    const expires = isKept ? this.endOf(from) : this.now + TOKEN_LIFE;
    this.credentials.push({ kind: "token", secret, user, tenant, version, family, expires });
  }

  /** Returns the end of a token; in the past for a void one. Rules D48. */
  endOf({ user, version, family, expires }: Token): number {
    if (version === user.version) return expires;
    return user.kept?.family === family ? Math.min(expires, user.kept.until) : 0;
  }

  /** Changes a user's password with a token. */
  changePassword(user: User, password: string, by: Token): void {
    const until = Math.min(this.endOf(by), this.now + KEPT_LIFE);
    user.kept = { family: by.family, until };
    user.password = password;
    user.version += 1;
  }

  /** Returns null for an invalid credential (rules sections 1 and 15.7). */
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

  /** Returns true for a credential that can never become valid again: it has expired, or was ended or deleted. */
  isDead(credential: Credential): boolean {
    if (credential.kind === "key") return this.standing(credential) === null;
    return this.now >= this.endOf(credential);
  }

  /** Returns the namespaces of a user's new token: several if the user joined them at the same time (rules 5.14). */
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

  /** Counts a wrong password. Returns true if it causes a lock. */
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
