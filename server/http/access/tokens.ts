import { type KeyObject, randomUUID, sign as signInPool } from "node:crypto";
import { promisify } from "node:util";
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from "jose";
import { LRUCache } from "lru-cache";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import type { UserToken } from "./identity.ts";

/** Maximum life of a token after its change of password ended the user's others, in milliseconds (rules D48). */
export const KEPT_LIFE = 60 * 60_000;
/** Life of a user's token in seconds (rules section 2). */
const USER_TOKEN_LIFE = 72 * 60 * 60;
/** Life of a device's token in seconds. Agents get a new one with each report, and reports come every ten minutes. */
export const DEVICE_TOKEN_LIFE = 7 * 24 * 60 * 60;

/** The claims of a valid token. */
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
  | ({
      readonly claims: "device";
      /** Whether its time is over. Tokens of earlier versions have no end, and count as expired. */
      readonly expired: boolean;
    } & TokenDevice);

export interface TokenDevice {
  readonly uid: string;
  readonly tenant: string;
  /** Whether the device has proven its private key. */
  readonly proven: boolean;
  /** When it enrolled: a device that is deleted and enrolls again has another token. */
  readonly enrolledAt: Date;
}

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

/** Version of a kept token, which is valid by its id alone. */
const NO_VERSION = -1;

/** The services that sign a token. */
type Signing = Pick<Services, "keys" | "now">;

/**
 * Makes a token for 72 hours. It carries no role, which is read with every request (rules section 1.4).
 * @param kept a token that is not renewed: the new token has its id and its expiry
 */
export function signUserToken(
  services: Signing,
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

/** Makes a token for a device's agent. */
function signDeviceToken(services: Services, device: TokenDevice): Promise<string> {
  const { uid, tenant, proven, enrolledAt } = device;
  const end = seconds(services.now()) + DEVICE_TOKEN_LIFE;
  const claims = { claims: "device", uid, tenant, proven, enrolled: enrolledAt.getTime() };
  return sign(services, claims, { jti: randomUUID(), end });
}

// Node's own function, in its thread pool: jose goes through Web Crypto, which takes 0.04 ms more of the event loop, an
// eighth of a device's first report.
const signBytes = promisify(signInPool);

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");

/** @param end Unix second of the expiry */
async function sign(
  { keys, now }: Signing,
  claims: Record<string, unknown>,
  { jti, end }: { readonly jti: string; readonly end: number },
): Promise<string> {
  const issued = seconds(now());
  const header = encode({ alg: "RS256", typ: "JWT", kid: keys.kid });
  const payload = encode({
    ...claims,
    jti,
    iat: issued,
    nbf: issued,
    exp: end,
  });
  const signature = await signBytes("sha256", Buffer.from(`${header}.${payload}`), keys.privateKey);
  return `${header}.${payload}.${signature.toString("base64url")}`;
}

/**
 * The claims of a token, if this service signed it, it is valid now and complete; else undefined.
 * @throws Error the database, which may have the token's key, cannot be read
 */
export async function verifyToken(services: Services, token: string): Promise<TokenClaims | undefined> {
  const kid = keyIdOf(token);
  // Looked up for every token, even a cached one: a key that is no longer trusted ends its tokens.
  const publicKey = kid === undefined ? undefined : await services.keys.find(kid);
  if (publicKey === undefined) return undefined;
  const second = seconds(services.now());
  const recalled = recallToken(publicKey, token, second);
  if (recalled !== undefined) return recalled;
  try {
    return await checkToken(services, publicKey, token);
  } catch (error) {
    // The caller learns only that the token is not accepted, not why. An expired one of a device still opens tunnels.
    const claims = error instanceof errors.JWTExpired ? claimsOf(error.payload, second) : undefined;
    return claims?.claims === "device" ? claims : undefined;
  }
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
    // Fixed, so that no token can choose a weaker algorithm.
    algorithms: ["RS256"],
    currentDate: services.now(),
  });
  const claims = claimsOf(payload, seconds(services.now()));
  if (claims) {
    const { nbf = Number.NEGATIVE_INFINITY, exp = Number.POSITIVE_INFINITY } = payload;
    verifiedBy(publicKey).set(digestOf(token), { claims, notBefore: nbf, expires: exp });
  }
  return claims;
}

/** @param second the present Unix second */
function claimsOf(payload: JWTPayload, second: number): TokenClaims | undefined {
  const { claims, id, name, tenant, uid, exp: expires, jti, ver: version } = payload;
  if (typeof tenant !== "string") return undefined;
  if (claims === "user") {
    const complete = typeof id === "string" && typeof name === "string" && typeof version === "number";
    if (!complete || expires === undefined || jti === undefined) return undefined;
    return { claims, id, name, tenant, version, jti, expires };
  }
  if (claims !== "device" || typeof uid !== "string") return undefined;
  const { proven, enrolled, iat = 0 } = payload;
  const enrolledAt = new Date(typeof enrolled === "number" ? enrolled : iat * 1000);
  const expired = typeof enrolled !== "number" || expires === undefined || expires <= second;
  return { claims, uid, tenant, proven: proven === true, enrolledAt, expired };
}

/** A token whose signature was verified. */
interface VerifiedToken {
  readonly claims: TokenClaims;
  /** Unix second from which the token is valid. */
  readonly notBefore: number;
  /** Unix second at which it expires; Infinity for a token that does not expire. */
  readonly expires: number;
}

/**
 * A cache for each signing key, so that the tokens of a replaced key go with it.
 * @param max entries per key
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

/** Verified tokens, by public key and digest of the token. */
const verifiedBy = cachePerKey<VerifiedToken>(20_000);

/**
 * The claims of a token that the key has verified before, if it is valid now. Only the signature is cached: the
 * caller's permissions are still read from the database with every request.
 * @param second the present Unix second
 */
export function recallToken(publicKey: KeyObject, token: string, second: number): TokenClaims | undefined {
  const known = verifiedBy(publicKey).get(digestOf(token));
  return known && known.notBefore <= second && second < known.expires ? known.claims : undefined;
}

/** Tokens of devices with the second of their issue, by private key and device; about 1 kilobyte each. */
const deviceTokens = cachePerKey<{ readonly token: string; readonly issued: number }>(100_000);

/**
 * A token for a device: the last one that this process gave it, as long as its signing key is current and half of its
 * life is left, since a signature costs more than the rest of a report.
 */
export async function deviceToken(services: Services, device: TokenDevice): Promise<string> {
  const tokens = deviceTokens(services.keys.privateKey);
  // The tenant is an input of the uid's digest.
  const name = `${device.uid} ${device.proven} ${device.enrolledAt.getTime()}`;
  const known = tokens.get(name);
  const second = seconds(services.now());
  if (known !== undefined && second >= known.issued && second < known.issued + DEVICE_TOKEN_LIFE / 2) {
    return known.token;
  }
  const token = await signDeviceToken(services, device);
  tokens.set(name, { token, issued: second });
  return token;
}
