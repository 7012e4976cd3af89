import { type KeyObject, randomUUID } from "node:crypto";
import { decodeProtectedHeader, type JWTPayload, jwtVerify, SignJWT } from "jose";
import type { Services } from "../services.ts";
import { recallToken, rememberToken } from "./verifiedTokens.ts";

/** Life of a user's token in seconds (rules section 2). */
const USER_TOKEN_LIFE = 72 * 60 * 60;

export type TokenClaims =
  | {
      readonly claims: "user";
      readonly id: string;
      readonly name: string;
      readonly tenant: string;
      readonly version: number;
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

/** A token for 72 hours. It carries no role: that is looked up with every request (rules section 1.4). */
export function signUserToken(services: Services, user: UserTokenSubject): Promise<string> {
  const { id, origin, tenant, username, mfa, tokenVersion } = user;
  const claims = { claims: "user", id, origin, tenant, name: username, mfa, ver: tokenVersion };
  return sign(services, claims, USER_TOKEN_LIFE);
}

/** A token that a device's agent keeps; it does not expire. */
export function signDeviceToken(
  services: Services,
  device: { readonly uid: string; readonly tenant: string },
): Promise<string> {
  return sign(services, { claims: "device", uid: device.uid, tenant: device.tenant });
}

function sign(services: Services, claims: Record<string, unknown>, life?: number): Promise<string> {
  const now = seconds(services.now());
  const jwt = new SignJWT(claims)
    .setProtectedHeader({ alg: "RS256", typ: "JWT", kid: services.keys.kid })
    .setJti(randomUUID())
    .setIssuedAt(now)
    .setNotBefore(now);
  if (life !== undefined) jwt.setExpirationTime(now + life);
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
    rememberToken(publicKey, token, { claims, notBefore: nbf, expires: exp });
  }
  return claims;
}

function claimsOf({ claims, id, name, tenant, uid, exp, ver: version }: JWTPayload): TokenClaims | undefined {
  if (typeof tenant !== "string") return undefined;
  if (claims === "user") {
    const complete = typeof id === "string" && typeof name === "string" && typeof version === "number";
    return complete && exp !== undefined ? { claims, id, name, tenant, version } : undefined;
  }
  if (claims === "device" && typeof uid === "string") return { claims, uid, tenant };
  return undefined;
}
