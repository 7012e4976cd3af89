import { createHash } from "node:crypto";

/** What is stored of a random secret (API key, MFA token, recovery code): hex SHA-256. */
export function digestOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}
