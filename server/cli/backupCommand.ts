import { existsSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { fetchBackup } from "../admin/adminClient.ts";
import { type BackupManifest, readBackup } from "../files/backupFile.ts";
import { OperatorError } from "../OperatorError.ts";
import type { Flags } from "../settings/readConfig.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { folderOf, subcommand } from "./subcommand.ts";

async function backup(io: CommandIo, name: string, flags: Flags): Promise<void> {
  const file = resolve(name);
  if (existsSync(file)) throw new OperatorError(`${file} already exists. Choose another file.`);
  await fetchBackup(folderOf(io, flags), file);
  const { hostKey, secret, external } = await verifiedManifest(file);
  print(io, `Wrote the backup ${file} (${statSync(file).size} bytes).`);
  print(
    io,
    hostKey === null
      ? "It contains the database. The service has no SSH host key."
      : `It contains the database and the SSH host key ${hostKey.fingerprint}.`,
  );
  print(
    io,
    `A restore needs the instance secret ${secret.fingerprint}, which is not in the backup. Keep a copy of it in another ` +
      `place: ${secret.source}.`,
  );
  if (external.length > 0)
    print(io, `The backup does not contain these settings and their files: ${external.join(", ")}.`);
}

/**
 * Reads a new backup and verifies its checksum, so that damage is detected now and not at the restore.
 * @throws OperatorError the backup is damaged; the command has then removed the file
 */
async function verifiedManifest(file: string): Promise<BackupManifest> {
  try {
    const manifest = await readBackup(file, async (database) => {
      for await (const _part of database);
    });
    if (manifest === undefined) throw new OperatorError(`The service wrote no backup to ${file}.`);
    return manifest;
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

/** Creates the command `gatehouse-server backup`, which backs up the running service that uses the data folder. */
export function backupCommand(io: CommandIo): Command {
  return subcommand("backup", "Back up the running service to a file.", "/backup/gatehouse.backup", {
    page: "docs/operate/backup.md",
  })
    .argument("<file>", "New file for the backup")
    .action((name: string, flags: Flags) => backup(io, name, flags));
}
