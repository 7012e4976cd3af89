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

/** A backup, and the service that it is restored to. */
interface RestoreRequest {
  readonly backup: string;
  readonly dataDir: string;
  /** Path of the database. */
  readonly database: string;
  /** The configured instance secret; undefined: the data folder's own. */
  readonly secret: string | undefined;
}

interface Restored extends BackupContent {
  /** Path at which the previous database is kept; undefined if there was none. */
  readonly kept: string | undefined;
}

/**
 * Replaces the database of a stopped service by a backup, after checking that the service can run on it.
 * @throws OperatorError when a service runs, the backup cannot be read or used, or its instance secret is missing;
 * nothing has changed then
 */
export async function restore({ backup, dataDir, database, secret }: RestoreRequest): Promise<Restored> {
  prepareDataFolder(dataDir);
  if (await serviceListens(dataDir)) {
    throw new OperatorError(`A service runs on the data folder ${dataDir}: stop it first`);
  }
  const known = knownSecret(dataDir, secret);
  if (known === undefined) {
    throw new OperatorError(
      `The data folder ${dataDir} has no instance secret: put the file \`secret\` there that was kept with the ` +
        "backup, for its user alone, or set GATEHOUSE_SECRET_FILE",
    );
  }
  if (existsSync(`${backup}-wal`)) {
    throw new OperatorError(
      `${backup} lacks what is in ${backup}-wal, since it was copied from a database in use: ` +
        "copy it with `gatehouse-server backup`, or open it once with `sqlite3`",
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
