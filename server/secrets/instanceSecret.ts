import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openToOthers, othersMayDoAnything, SECRET_FILE } from "../files/dataFolder.ts";
import { createDurably } from "../files/durableFile.ts";
import { readSecretFile } from "../files/readSecretFile.ts";
import { OperatorError } from "../OperatorError.ts";
import type { Sealer } from "./sealer.ts";

/**
 * Returns the instance secret, which encrypts other secrets in the database. If no secret is configured, returns the
 * secret in the data folder. The first start creates this secret. If several instances start concurrently with the same
 * data folder, one instance creates the secret. All instances that use one database need the same secret.
 * @throws OperatorError users other than the file's owner may read the file
 */
export function instanceSecret(folder: string, configured: string | undefined): string {
  const known = knownSecret(folder, configured);
  if (known !== undefined) return known;
  createDurably(join(folder, SECRET_FILE), `${randomBytes(32).toString("base64url")}\n`);
  return readSecretFile(join(folder, SECRET_FILE));
}

/**
 * Returns the instance secret, but never creates it. Returns undefined if no secret exists.
 * @throws OperatorError users other than the file's owner may read the file
 */
export function knownSecret(folder: string, configured: string | undefined): string | undefined {
  if (configured !== undefined) return configured;
  const file = join(folder, SECRET_FILE);
  if (!existsSync(file)) return undefined;
  if (openToOthers(file, othersMayDoAnything)) {
    throw new OperatorError(
      `Users other than the owner may read or write the secret ${file}. If no other user can have read it, run \`chmod 600 ${file}\``,
    );
  }
  return readSecretFile(file);
}

/**
 * Returns the fingerprint of the instance secret (16 lower-case hex characters). Operators use it to distinguish
 * secrets. The fingerprint does not disclose the secret.
 */
export const secretFingerprint = (sealer: Sealer): string =>
  sealer.mark("", "fingerprint of the instance secret").slice(0, 16);
