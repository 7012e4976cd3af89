import { hash } from "node:crypto";

/** The SHA-256 digest, in hex, under which a random secret (API key, MFA token, recovery code) is stored. */
export function digestOf(secret: string): string {
  return hash("sha256", secret);
}
