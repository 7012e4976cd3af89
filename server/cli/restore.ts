import { createReadStream, existsSync, rmSync } from "node:fs";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { serviceListens } from "../admin/socketPath.ts";
import { type BackupContent, checkBackup } from "../db/sqlite/checkBackup.ts";
import { replaceSqlite } from "../db/sqlite/replace.ts";
import { prepareDataFolder } from "../files/dataFolder.ts";
import { streamDurably } from "../files/durableFile.ts";
import { OperatorError } from "../OperatorError.ts";
import { knownSecret } from "../secrets/instanceSecret.ts";
import { sealerOf } from "../secrets/sealer.ts";
import { openSigningKey } from "../secrets/signingKeys.ts";

/** Parameters of a restore: the backup, and the data of the service to restore. */
interface RestoreRequest {
  readonly backup: string;
  readonly dataDir: string;
  /** Path of the database that the backup replaces. */
  readonly database: string;
  /** The configured instance secret; undefined: the secret of the data folder. */
  readonly secret: string | undefined;
}

interface Restored extends BackupContent {
  /** New path of the previous database; undefined if no database existed. */
  readonly kept: string | undefined;
}

/**
 * Checks that a stopped service can use a backup, and replaces the database of the service with the backup.
 * @throws OperatorError if the service runs, the backup cannot be read or used, or its instance secret is missing; then
 * nothing has changed
 */
export async function restore({ backup, dataDir, database, secret }: RestoreRequest): Promise<Restored> {
  prepareDataFolder(dataDir);
  if (await serviceListens(dataDir)) {
    throw new OperatorError(`A service runs on the data folder ${dataDir}. Stop it first.`);
  }
  const known = knownSecret(dataDir, secret);
  if (known === undefined) {
    throw new OperatorError(
      `The data folder ${dataDir} has no instance secret. Copy the file \`secret\` of the backed-up service to the folder, ` +
        "readable only by the user of the service, or set GATEHOUSE_SECRET_FILE.",
    );
  }
  if (existsSync(`${backup}-wal`)) {
    throw new OperatorError(
      `${backup} is incomplete: it was copied from a database in use, and a part of its data is in ${backup}-wal. ` +
        "Copy the database with `gatehouse-server backup`, or open the copy once with `sqlite3`.",
    );
  }
  const copy = `${database}.restoring`;
  try {
    await streamDurably(copy, createReadStream(backup)).catch((error: NodeJS.ErrnoException) => {
      const isBackup = error.path === backup || error.syscall === "read";
      const [action, file] = isBackup ? (["read", backup] as const) : (["write", database] as const);
      throw new OperatorError(fileFailureText(action, file, error), { cause: error });
    });
    const sealer = sealerOf(known);
    const content = checkBackup(copy, backup, (key) => openSigningKey(sealer, key));
    const kept = `${database}.before-restore-${new Date().toISOString().replaceAll(":", "")}`;
    const existed = existsSync(database);
    replaceSqlite(database, copy, kept);
    return { ...content, kept: existed ? kept : undefined };
  } finally {
    rmSync(copy, { force: true });
  }
}
