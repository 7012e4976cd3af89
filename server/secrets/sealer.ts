import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { OperatorError } from "../OperatorError.ts";

const CIPHER = "aes-256-gcm";
const NONCE = 12;
const TAG = 16;

/**
 * Encrypts and decrypts secrets for storage in the database. Only secrets that the service itself needs in plaintext
 * are encrypted this way.
 */
export interface Sealer {
  /**
   * Encrypts a secret.
   * @param purpose kind and owner of the secret. `open` fails with a different purpose, so that a secret that was
   *   copied to another row cannot be decrypted.
   */
  seal(text: string, purpose: string): string;
  /**
   * Decrypts a secret.
   * @throws OperatorError the secret was encrypted with a different instance secret or for a different purpose, or the
   *   encrypted text has changed
   */
  open(sealed: string, purpose: string): string;
  /**
   * Returns a keyed digest (64 lower-case hex characters). The digest cannot be computed without the instance secret.
   * The same text and purpose always have the same digest.
   */
  mark(text: string, purpose: string): string;
}

/** Creates a sealer (AES-256-GCM) whose key is derived from the instance secret. */
export function sealerOf(secret: string): Sealer {
  const key = Buffer.from(hkdfSync("sha256", secret, "", "gatehouse database secrets", 32));
  const markKey = Buffer.from(hkdfSync("sha256", secret, "", "gatehouse marks", 32));
  return {
    mark: (text, purpose) =>
      createHmac("sha256", markKey)
        .update(JSON.stringify([purpose, text]))
        .digest("hex"),
    seal(text, purpose) {
      const nonce = randomBytes(NONCE);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(purpose));
      const encrypted = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), encrypted]).toString("base64url");
    },
    open(sealed, purpose) {
      const bytes = Buffer.from(sealed, "base64url");
      try {
        const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE), { authTagLength: TAG })
          .setAAD(Buffer.from(purpose))
          .setAuthTag(bytes.subarray(NONCE, NONCE + TAG));
        return decipher.update(bytes.subarray(NONCE + TAG), undefined, "utf8") + decipher.final("utf8");
      } catch {
        throw new OperatorError(
          "A secret in the database was sealed with a different instance secret. Set GATEHOUSE_SECRET_FILE (or " +
            "GATEHOUSE_SECRET) of every instance to the secret of the instance that created the database",
        );
      }
    },
  };
}
