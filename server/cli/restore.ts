import { accessSync, constants, existsSync, rmSync } from "node:fs";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import { serviceListens } from "../admin/socketPath.ts";
import { type BackupContent, checkBackup } from "../db/sqlite/checkBackup.ts";
import { replaceSqlite } from "../db/sqlite/replace.ts";
import { type BackupManifest, readBackup } from "../files/backupFile.ts";
import { prepareDataFolder } from "../files/dataFolder.ts";
import { streamDurably } from "../files/durableFile.ts";
import { OperatorError } from "../OperatorError.ts";
import { knownSecret, secretFingerprint } from "../secrets/instanceSecret.ts";
import { type Sealer, sealerOf } from "../secrets/sealer.ts";
import { openSigningKey } from "../secrets/signingKeys.ts";
import { RestoredHostKey, type RestoreMessages } from "./RestoredHostKey.ts";

/** Parameters of a restore: the backup, and the paths and the secret of the service. */
interface RestoreRequest {
  readonly backup: string;
  readonly dataDir: string;
  /** Path of the database that the backup replaces. */
  readonly database: string;
  /** The configured instance secret. Undefined if the service uses the secret in the data folder. */
  readonly secret: string | undefined;
  /** Path of the configured SSH host key. Undefined if the service uses the key in the data folder. */
  readonly sshHostKeyFile: string | undefined;
}

interface Restored extends BackupContent {
  /** New path of the previous database. Undefined if no database existed. */
  readonly kept: string | undefined;
  readonly hostKey: RestoreMessages;
  /**
   * The manifest of the backup. Undefined if an earlier version wrote the backup. Such a backup has no manifest, no
   * checksum and no host key.
   */
  readonly manifest: BackupManifest | undefined;
}

/**
 * Replaces the database and the SSH host key of a stopped service with those of a backup. First checks that the service
 * can use the backup.
 * @throws OperatorError the service runs, the backup cannot be read or used, or the instance secret of the backup is
 *   missing. In these cases, nothing has changed. Also thrown if the SSH host key cannot be installed. In this case,
 *   the database is already restored, and the message reports both facts.
 */
export async function restore(request: RestoreRequest): Promise<Restored> {
  const { backup, dataDir, database, secret, sshHostKeyFile } = request;
  prepareDataFolder(dataDir);
  if (await serviceListens(dataDir)) {
    throw new OperatorError(`A service runs on the data folder ${dataDir}. Stop it first.`);
  }
  try {
    accessSync(backup, constants.R_OK);
  } catch (cause) {
    throw new OperatorError(fileFailureText("read", backup, cause), { cause });
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
  const sealer = sealerOf(known);
  const copy = `${database}.restoring`;
  let hostKey: RestoredHostKey | undefined;
  try {
    const manifest = await readBackup(backup, (content) =>
      streamDurably(copy, content).catch((error: NodeJS.ErrnoException) => {
        // An error that concerns the backup has the path of the backup, is a read error, or is not a system error.
        if (error.path === backup || error.syscall === "read" || error.syscall === undefined) throw error;
        throw new OperatorError(fileFailureText("write", database, error), { cause: error });
      }),
    );
    checkSecret(backup, manifest, sealer);
    const content = checkBackup(copy, backup, (key) => openSigningKey(sealer, key));
    const time = new Date().toISOString().replaceAll(":", "");
    hostKey = new RestoredHostKey(manifest, sealer, { dataDir, configured: sshHostKeyFile, time });
    hostKey.stage();
    const kept = `${database}.before-restore-${time}`;
    const existed = existsSync(database);
    replaceSqlite(database, copy, kept);
    const previous = existed ? ` The previous database is in ${kept}.` : "";
    const installed = hostKey.install(`Restored ${database} from ${backup}.${previous}`);
    return { ...content, kept: existed ? kept : undefined, hostKey: installed, manifest };
  } finally {
    rmSync(copy, { force: true });
    hostKey?.dispose();
  }
}

/** @throws OperatorError the backup was written with a different instance secret */
function checkSecret(backup: string, manifest: BackupManifest | undefined, sealer: Sealer): void {
  const own = secretFingerprint(sealer);
  if (manifest === undefined || manifest.secret.fingerprint === own) return;
  const { fingerprint, source } = manifest.secret;
  throw new OperatorError(
    `${backup} was written with a different instance secret: ${fingerprint} (${source}), not ${own}. Provide that secret ` +
      "as the file `secret` in the data folder, or with GATEHOUSE_SECRET_FILE.",
  );
}
