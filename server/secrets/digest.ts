import { hash, timingSafeEqual } from "node:crypto";

/**
 * Returns the SHA-256 digest of a random secret (API key, MFA token, recovery code), in hex. The service stores the
 * digest instead of the secret.
 */
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
