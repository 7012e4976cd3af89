import { type KeyObject, randomUUID, sign as signInPool } from "node:crypto";
import { promisify } from "node:util";
import { DAY, HOUR, SECOND } from "@gatehouse-access/sdk/times";
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from "jose";
import { LRUCache } from "lru-cache";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import type { UserToken } from "./identity.ts";

/**
 * Maximum lifetime, in milliseconds, of a token that stays valid after a password change (rules D48). A password change
 * invalidates all tokens of the user except the token of the request that changes the password.
 */
export const KEPT_LIFE = HOUR;
/** Lifetime of a user's token, in seconds (rules section 2). */
const USER_TOKEN_LIFE = (72 * HOUR) / SECOND;
/** Lifetime of a device's token, in seconds. Agents receive a new token with each report, every ten minutes. */
const DEVICE_TOKEN_LIFE = (7 * DAY) / SECOND;

/**
 * The claims of a valid token. Claims are the fields of a JSON Web Token that identify its user, device or workload.
 */
export type TokenClaims =
  | {
      readonly claims: "user";
      readonly id: string;
      readonly name: string;
      readonly tenant: string;
      readonly version: number;
      readonly jti: string;
      /** Expiry time, as a Unix second. */
      readonly expires: number;
    }
  | ({ readonly claims: "workload" } & WorkloadSubject)
  | ({
      readonly claims: "device";
      /** True if the token has expired. Tokens of earlier versions have no expiry, and are treated as expired. */
      readonly expired: boolean;
    } & TokenDevice);

interface TokenDevice {
  readonly uid: string;
  readonly tenant: string;
  /** True if the agent had proven that it has the device's private key when it received the token. */
  readonly proven: boolean;
  /** Time of the enrollment. If a device is deleted and enrolls again, its new token contains a later time. */
  readonly enrolledAt: Date;
}

/** Lifetime of a workload's token, in seconds. */
const WORKLOAD_TOKEN_LIFE = 15 * 60;

/** A workload with a session. */
interface WorkloadSubject {
  readonly id: string;
  readonly tenant: string;
  /** Name of the running job in the audit trail. */
  readonly name: string;
  /** Digest of the rules that the exchanged token matched. */
  readonly rules: string;
  /** Time of issue of the exchanged token. */
  readonly startedAt: Date;
}

const seconds = (time: Date): number => Math.floor(time.getTime() / 1000);

interface UserTokenSubject {
  readonly id: string;
  readonly origin: string;
  readonly username: string;
  readonly mfa: boolean;
  readonly tokenVersion: number;
  /** The token's namespace; empty if the token has no namespace. */
  readonly tenant: string;
}

/**
 * Version number in tokens that stay valid after a password change. The validity of such a token depends only on its
 * id.
 */
const NO_VERSION = -1;

/** The services that token signing requires. */
type Signing = Pick<Services, "keys" | "now">;

/**
 * Creates a user token that is valid for 72 hours. The token contains no role, because the service reads the role with
 * every request (rules section 1.4).
 * @param kept a token that stayed valid after a password change. The new token gets the same id and the same expiry
 *   time, so that the lifetime is not extended.
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

/**
 * Creates a token for a workload. The token is valid for 15 minutes, or until `last` if `last` is earlier.
 * @param last latest time at which the token may expire
 */
export async function signWorkloadToken(
  services: Signing,
  { startedAt, ...subject }: WorkloadSubject,
  last: Date,
): Promise<{ readonly token: string; readonly endsAt: Date }> {
  const end = Math.min(seconds(services.now()) + WORKLOAD_TOKEN_LIFE, seconds(last));
  const claims = { claims: "workload", ...subject, started: seconds(startedAt) };
  const token = await sign(services, claims, { jti: randomUUID(), end });
  return { token, endsAt: new Date(end * 1000) };
}

/** Creates a token for a device's agent. */
function signDeviceToken(services: Services, device: TokenDevice): Promise<string> {
  const { uid, tenant, proven, enrolledAt } = device;
  const end = seconds(services.now()) + DEVICE_TOKEN_LIFE;
  const claims = { claims: "device", uid, tenant, proven, enrolled: enrolledAt.getTime() };
  return sign(services, claims, { jti: randomUUID(), end });
}

// Sign tokens with Node's own function, which runs in Node's thread pool. The library jose uses Web Crypto, which uses
// the event loop for 0.04 ms more. This is an eighth of the time of a device's first report.
const signBytes = promisify(signInPool);

const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");

/**
 * Signs claims as a JSON Web Token.
 * @param end expiry time, as a Unix second
 */
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
 * Returns the claims of a token that this service signed and that is complete and valid now. Also returns the claims of
 * an expired device token. Returns undefined for any other token.
 * @throws Error the service cannot read the token's key from the database
 */
export async function verifyToken(services: Services, token: string): Promise<TokenClaims | undefined> {
  const kid = keyIdOf(token);
  // Look up the key of every token, including cached tokens, because a token is invalid if its key is no longer
  // trusted.
  const publicKey = kid === undefined ? undefined : await services.keys.find(kid);
  if (publicKey === undefined) return undefined;
  const second = seconds(services.now());
  const recalled = recallToken(publicKey, token, second);
  if (recalled !== undefined) return recalled;
  try {
    return await checkToken(services, publicKey, token);
  } catch (error) {
    // Drop the error, because the response must not contain the reason why a token is invalid. If a device token has
    // expired, return its claims, because the token can still open tunnels.
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
    // Fix the algorithm, so that no token can select a weaker algorithm.
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

/**
 * Returns the claims from the payload of a token. Returns undefined if the claims are incomplete.
 * @param second the current Unix second
 */
function claimsOf(payload: JWTPayload, second: number): TokenClaims | undefined {
  const { claims, id, name, tenant, uid, exp: expires, jti, ver: version } = payload;
  if (typeof tenant !== "string") return undefined;
  if (claims === "user") {
    const complete = typeof id === "string" && typeof name === "string" && typeof version === "number";
    if (!complete || expires === undefined || jti === undefined) return undefined;
    return { claims, id, name, tenant, version, jti, expires };
  }
  if (claims === "workload") {
    const { rules, started } = payload;
    const complete = typeof id === "string" && typeof name === "string" && typeof rules === "string";
    if (!complete || typeof started !== "number" || expires === undefined) return undefined;
    return { claims, id, name, tenant, rules, startedAt: new Date(started * 1000) };
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
  /** Start of the token's validity, as a Unix second. */
  readonly notBefore: number;
  /** Expiry time, as a Unix second. Infinity if the token does not expire. */
  readonly expires: number;
}

/**
 * Creates the caches of the signing keys. The returned function returns the cache of a key. When a replaced key is
 * garbage-collected, its cached tokens are freed too.
 * @param max maximum number of entries per key
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
 * Returns the cached claims of a token if its signature was already verified with the key, and if the token is valid
 * now. Returns undefined otherwise. Only the verification is cached: the service still reads the caller's permissions
 * from the database with every request.
 * @param second the current Unix second
 */
export function recallToken(publicKey: KeyObject, token: string, second: number): TokenClaims | undefined {
  const known = verifiedBy(publicKey).get(digestOf(token));
  return known && known.notBefore <= second && second < known.expires ? known.claims : undefined;
}

/**
 * Cache of device tokens and their issue times (Unix seconds), by private key and device. An entry takes about 1
 * kilobyte.
 */
const deviceTokens = cachePerKey<{ readonly token: string; readonly issued: number }>(100_000);

/**
 * Returns a token for a device. Reuses the last token that this process created, as long as the token's signing key is
 * current and at least half of the token's lifetime remains. The reason is that a signature costs more than the rest of
 * a device report.
 */
export async function deviceToken(services: Services, device: TokenDevice): Promise<string> {
  const tokens = deviceTokens(services.keys.privateKey);
  // The tenant is not part of the cache key, because the device's uid is a digest that includes the tenant.
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
