import type { Role } from "@gatehouse-access/sdk/contract";

/** The roles, weakest first (rules section 4). */
const LEVELS: readonly Role[] = ["observer", "operator", "administrator", "owner"];
export const rank = (role: Role): number => LEVELS.indexOf(role);
/** Returns the next higher role; undefined for the owner's role. */
export const above = (role: Role): Role | undefined => LEVELS[rank(role) + 1];

const MINUTE = 60;
/** Lifetime of a user's token, in seconds (rules section 2). */
const TOKEN_LIFE = 259_200;
/** Lifetime, in seconds, of the token with which a user changed the password (rules D48). */
const KEPT_LIFE = 3600;

/** The state of the lockout after consecutive wrong passwords (rules section 9). Times are Unix times in seconds. */
interface Failures {
  readonly attempts: number;
  readonly lockedUntil: number;
  readonly forgotten: number;
}
type Counter = "login" | "password";

export interface User {
  readonly id: string;
  readonly username: string;
  readonly email: string;
  password: string;
  /** Number of the user's password changes. */
  version: number;
  /**
   * The tokens that stay valid after a password change, until `until`: the token that changed the password, and the
   * tokens created from it.
   */
  kept: { readonly family: number; readonly until: number } | null;
  preferred: string | null;
  readonly failures: Map<Counter, Failures>;
}

export interface Place {
  readonly tenant: string;
  readonly members: Map<User, { role: Role; readonly since: number }>;
  /** API keys, by name. */
  readonly keys: Map<string, { role: Role }>;
}

interface Token {
  readonly kind: "token";
  readonly secret: string;
  readonly user: User;
  readonly tenant: string;
  /**
   * The value of {@link User.version} when the token was created; null if the token was created from a kept token (see
   * {@link User.kept}).
   */
  readonly version: number | null;
  /** Number of the token's family. A kept token and the tokens created from it have the same family. */
  readonly family: number;
  readonly expires: number;
}

interface Key {
  readonly kind: "key";
  readonly secret: string;
  readonly tenant: string;
  readonly name: string;
  readonly expires: number;
}

export type Credential = Token | Key;

/** The permissions of a valid credential: the role in the credential's namespace; null without a namespace. */
interface Standing {
  readonly role: Role | null;
}

/** A model of the rules in memory. It computes the permissions of every credential without using the service. */
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

  /** @param from the token with which the new token was created; null if it was created with a password */
  addToken(user: User, tenant: string, secret: string, from: Token | null): void {
    const isKept = from !== null && from.version !== user.version;
    const version = isKept ? null : user.version;
    const family = isKept ? from.family : this.credentials.length;
    const expires = isKept ? this.endOf(from) : this.now + TOKEN_LIFE;
    this.credentials.push({ kind: "token", secret, user, tenant, version, family, expires });
  }

  /** Returns the time at which a token expires (rules D48). For a voided token, returns 0. */
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

  /** Returns the permissions of a credential; null if the credential is invalid (rules sections 1 and 15.7). */
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

  /** Returns true if the credential can never become valid again, because it has expired, was voided or was deleted. */
  isDead(credential: Credential): boolean {
    if (credential.kind === "key") return this.standing(credential) === null;
    return this.now >= this.endOf(credential);
  }

  /**
   * Returns the possible namespaces of a user's new token. There are several if the user joined them at the same time
   * (rules 5.14).
   */
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

  /** Counts a wrong password. Returns true if this wrong password causes a lock. */
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
