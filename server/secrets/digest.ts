import { hash, timingSafeEqual } from "node:crypto";

/** Returns the SHA-256 digest, in hex, under which a random secret (API key, MFA token, recovery code) is stored. */
export function digestOf(secret: string): string {
  return hash("sha256", secret);
}

/**
 * Compares two secrets in constant time. The function compares digests of the secrets, because digests have the same
 * length.
 */
export function isSameSecret(left: string, right: string): boolean {
  return timingSafeEqual(Buffer.from(digestOf(left)), Buffer.from(digestOf(right)));
}
