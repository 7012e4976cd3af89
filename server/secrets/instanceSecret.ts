import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openToOthers, othersMayDoAnything, SECRET_FILE } from "../files/dataFolder.ts";
import { createDurably } from "../files/durableFile.ts";
import { readSecretFile } from "../files/readSecretFile.ts";
import { OperatorError } from "../OperatorError.ts";

/**
 * The secret that seals others in the database: the configured one, else that of the data folder, which the first start
 * creates. Of several instances that start at once on one folder, one creates it. All instances on one database need
 * the same secret.
 * @throws OperatorError users other than the file's own may read it, so that it is no secret
 */
export function instanceSecret(folder: string, configured: string | undefined): string {
  const known = knownSecret(folder, configured);
  if (known !== undefined) return known;
  createDurably(join(folder, SECRET_FILE), `${randomBytes(32).toString("base64url")}\n`);
  return readSecretFile(join(folder, SECRET_FILE));
}

/**
 * The instance secret, without creating it: undefined if there is none yet.
 * @throws OperatorError users other than the file's own may read it
 */
export function knownSecret(folder: string, configured: string | undefined): string | undefined {
  if (configured !== undefined) return configured;
  const file = join(folder, SECRET_FILE);
  if (!existsSync(file)) return undefined;
  if (openToOthers(file, othersMayDoAnything)) {
    throw new OperatorError(
      `Others than its user may read or write the secret ${file}: run \`chmod 600 ${file}\` if nobody else can have read it`,
    );
  }
  return readSecretFile(file);
}
