import { createHash, sign } from "node:crypto";
import type { SigningKeys } from "./signingKeys.ts";

/**
 * Returns the secret of the setup link: hex SHA-256 of the RSA PKCS#1 v1.5 SHA-256 signature of the text `shellhub`
 * (rules section 11). The secret stays the same until the signing key changes.
 */
export function setupSign(keys: SigningKeys): string {
  return createHash("sha256")
    .update(sign("sha256", Buffer.from("shellhub"), keys.privateKey))
    .digest("hex");
}
