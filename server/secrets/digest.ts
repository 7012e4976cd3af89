import { hash } from "node:crypto";

/** What is stored of a random secret (API key, MFA token, recovery code): hex SHA-256. */
export function digestOf(secret: string): string {
  return hash("sha256", secret);
}
