import { type KeyObject, randomUUID } from "node:crypto";
import { decodeProtectedHeader, type JWTPayload, jwtVerify, SignJWT } from "jose";
import { LRUCache } from "lru-cache";
import { digestOf } from "../secrets/digest.ts";
import type { Services } from "../services.ts";
import type { UserToken } from "./identity.ts";

/** How long a token lives at most that ended the user's others by a new password, in milliseconds (rules D48). */
export const KEPT_LIFE = 60 * 60_000;
/** Life of a user's token in seconds (rules section 2). */
const USER_TOKEN_LIFE = 72 * 60 * 60;

export type TokenClaims =
  | {
      readonly claims: "user";
      readonly id: string;
      readonly name: string;
      readonly tenant: string;
      readonly version: number;
      readonly jti: string;
      /** Unix second. */
      readonly expires: number;
    }
  | { readonly claims: "device"; readonly uid: string; readonly tenant: string };

const seconds = (time: Date): number => Math.floor(time.getTime() / 1000);

interface UserTokenSubject {
  readonly id: string;
  readonly origin: string;
  readonly username: string;
  readonly mfa: boolean;
  readonly tokenVersion: number;
  /** Empty without a namespace. */
  readonly tenant: string;
}

/** The version of a token that counts by its id alone. */
const NO_VERSION = -1;

/**
 * A token for 72 hours. It carries no role: that is looked up with every request (rules section 1.4).
 * @param kept a token that is not renewed: the new one has its id, and ends when it does
 */
export function signUserToken(
  services: Services,
  user: UserTokenSubject,
  kept?: Pick<UserToken, "id" | "endsAt">,
): Promise<string> {
  const { id, origin, tenant, username, mfa, tokenVersion } = user;
  const claims = { claims: "user", id, origin, tenant, name: username, mfa };
  if (kept)
    return sign(services, { ...claims, ver: NO_VERSION }, { jti: kept.id, end: seconds(kept.endsAt) });
  const end = seconds(services.now()) + USER_TOKEN_LIFE;
  return sign(services, { ...claims, ver: tokenVersion }, { jti: randomUUID(), end });
}

/** A token that a device's agent keeps; it does not expire. */
function signDeviceToken(
  services: Services,
  device: { readonly uid: string; readonly tenant: string },
): Promise<string> {
  return sign(services, { claims: "device", uid: device.uid, tenant: device.tenant }, { jti: randomUUID() });
}

/** @param end unix second; left out: none */
function sign(
  services: Services,
  claims: Record<string, unknown>,
  { jti, end }: { readonly jti: string; readonly end?: number },
): Promise<string> {
  const now = seconds(services.now());
  const jwt = new SignJWT(claims)
    .setProtectedHeader({ alg: "RS256", typ: "JWT", kid: services.keys.kid })
    .setJti(jti)
    .setIssuedAt(now)
    .setNotBefore(now);
  if (end !== undefined) jwt.setExpirationTime(end);
  return jwt.sign(services.keys.privateKey);
}

/**
 * The claims of a token that is ours, in time and complete; undefined for any other one.
 * @throws Error the database, which may have its key, cannot be asked
 */
export async function verifyToken(services: Services, token: string): Promise<TokenClaims | undefined> {
  const kid = keyIdOf(token);
  // Asked with every token, also one that was verified before: a key that is believed no more ends its tokens.
  const publicKey = kid === undefined ? undefined : await services.keys.find(kid);
  if (publicKey === undefined) return undefined;
  const recalled = recallToken(publicKey, token, seconds(services.now()));
  // Whatever is wrong with it, the caller learns no more than that it is not accepted.
  return recalled ?? checkToken(services, publicKey, token).catch(() => undefined);
}

function keyIdOf(token: string): string | undefined {
  try {
    return decodeProtectedHeader(token).kid;
  } catch {
    return undefined;
  }
}

async function checkToken(
  services: Services,
  publicKey: KeyObject,
  token: string,
): Promise<TokenClaims | undefined> {
  const { payload } = await jwtVerify(token, publicKey, {
    // Named here, so that no token can choose a weaker algorithm by itself.
    algorithms: ["RS256"],
    currentDate: services.now(),
  });
  const claims = claimsOf(payload);
  if (claims) {
    const { nbf = Number.NEGATIVE_INFINITY, exp = Number.POSITIVE_INFINITY } = payload;
    verifiedBy(publicKey).set(digestOf(token), { claims, notBefore: nbf, expires: exp });
  }
  return claims;
}

function claimsOf(payload: JWTPayload): TokenClaims | undefined {
  const { claims, id, name, tenant, uid, exp: expires, jti, ver: version } = payload;
  if (typeof tenant !== "string") return undefined;
  if (claims === "user") {
    const complete = typeof id === "string" && typeof name === "string" && typeof version === "number";
    if (!complete || expires === undefined || jti === undefined) return undefined;
    return { claims, id, name, tenant, version, jti, expires };
  }
  if (claims === "device" && typeof uid === "string") return { claims, uid, tenant };
  return undefined;
}

/** What a token says whose signature was checked. */
interface VerifiedToken {
  readonly claims: TokenClaims;
  /** Unix second from which on it is valid. */
  readonly notBefore: number;
  /** Unix second from which on it is not; Infinity for one that does not expire. */
  readonly expires: number;
}

/**
 * A cache for each signing key, so that a key which is replaced takes its tokens with it.
 * @param max entries of each
 */
function cachePerKey<Value extends {}>(max: number): (key: KeyObject) => LRUCache<string, Value> {
  const caches = new WeakMap<KeyObject, LRUCache<string, Value>>();
  return (key) => {
    const known = caches.get(key);
    if (known !== undefined) return known;
    const cache = new LRUCache<string, Value>({ max });
    caches.set(key, cache);
    return cache;
  };
}

/** By public key. Tokens are kept as digests. */
const verifiedBy = cachePerKey<VerifiedToken>(20_000);

/**
 * The claims of a token that the key has verified before and that is in time now. Only the signature is taken as
 * checked: what the caller may do is still read from the database with every request.
 * @param second unix time
 */
export function recallToken(publicKey: KeyObject, token: string, second: number): TokenClaims | undefined {
  const known = verifiedBy(publicKey).get(digestOf(token));
  return known && known.notBefore <= second && second < known.expires ? known.claims : undefined;
}

/** By private key and uid; about 0.8 kilobytes each. */
const deviceTokens = cachePerKey<string>(100_000);

/**
 * A token for a device: the one that this process gave it last, while its signing key lives, since a signature
 * costs more than all the rest of a report.
 */
export async function deviceToken(
  services: Services,
  device: { readonly uid: string; readonly tenant: string },
): Promise<string> {
  const tokens = deviceTokens(services.keys.privateKey);
  // The tenant is a part of what the uid is made of.
  const known = tokens.get(device.uid);
  if (known !== undefined) return known;
  const token = await signDeviceToken(services, device);
  tokens.set(device.uid, token);
  return token;
}
