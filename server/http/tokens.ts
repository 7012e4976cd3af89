import { randomUUID } from "node:crypto";
import { type JWTPayload, jwtVerify, SignJWT } from "jose";
import type { Services } from "../services.ts";
import { recallToken, rememberToken } from "./verifiedTokens.ts";

/** Life of a user's token in seconds (rules section 2). */
const USER_TOKEN_LIFE = 72 * 60 * 60;

export type TokenClaims =
  | { readonly claims: "user"; readonly id: string; readonly name: string; readonly tenant: string }
  | { readonly claims: "device"; readonly uid: string; readonly tenant: string };

const seconds = (time: Date): number => Math.floor(time.getTime() / 1000);

interface UserTokenSubject {
  readonly id: string;
  readonly origin: string;
  readonly username: string;
  readonly mfa: boolean;
  /** Empty without a namespace. */
  readonly tenant: string;
}

/** A token for 72 hours. It carries no role: that is looked up with every request (rules section 1.4). */
export function signUserToken(services: Services, user: UserTokenSubject): Promise<string> {
  const { id, origin, tenant, username, mfa } = user;
  return sign(services, { claims: "user", id, origin, tenant, name: username, mfa }, USER_TOKEN_LIFE);
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
    .setProtectedHeader({ alg: "RS256", typ: "JWT" })
    .setJti(randomUUID())
    .setIssuedAt(now)
    .setNotBefore(now);
  if (life !== undefined) jwt.setExpirationTime(now + life);
  return jwt.sign(services.keys.privateKey);
}

/** The claims of a token that is ours, in time and complete; undefined for any other one. */
export async function verifyToken(services: Services, token: string): Promise<TokenClaims | undefined> {
  const { publicKey } = services.keys;
  const known = recallToken(publicKey, token, seconds(services.now()));
  if (known) return known;
  try {
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
  } catch {
    // Whatever is wrong with it, the caller learns no more than that it is not accepted.
    return undefined;
  }
}

function claimsOf({ claims, id, name, tenant, uid, exp }: JWTPayload): TokenClaims | undefined {
  if (typeof tenant !== "string") return undefined;
  if (claims === "user" && typeof id === "string" && typeof name === "string" && exp !== undefined) {
    return { claims, id, name, tenant };
  }
  if (claims === "device" && typeof uid === "string") return { claims, uid, tenant };
  return undefined;
}
