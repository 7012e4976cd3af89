import { resolve } from "node:path";
import type { Command } from "commander";
import { OperatorError } from "../OperatorError.ts";
import { databaseAt, type Flags, readSettings } from "../settings/readConfig.ts";
import { settings } from "../settings/settings.ts";
import { type CommandIo, print, warn } from "./CommandIo.ts";
import { addOption } from "./serveCommand.ts";
import { subcommand } from "./subcommand.ts";

async function restoreBackup(io: CommandIo, name: string, flags: Flags): Promise<void> {
  const values = readSettings(
    ["dataDir", "databaseUrl", "databaseConnections", "secret", "sshHostKeyFile"],
    io.env,
    flags,
  );
  const { dataDir, secret, sshHostKeyFile } = values;
  const database = databaseAt(values.databaseUrl, dataDir, values.databaseConnections);
  if (!("file" in database)) {
    throw new OperatorError(
      "The service uses PostgreSQL. Restore the database with `pg_restore`, and copy the instance secret and the SSH host " +
        "key of the service to this host.",
    );
  }
  // This module is loaded on demand, so that other commands start faster.
  const { restore } = await import("./restore.ts");
  const backup = resolve(name);
  const restored = await restore({ backup, dataDir, database: database.file, secret, sshHostKeyFile });
  const { users, namespaces, devices, kept, hostKey, manifest } = restored;
  print(
    io,
    `Restored ${database.file} from ${backup}: ${users} users, ${namespaces} namespaces, ${devices} devices.`,
  );
  if (kept !== undefined) print(io, `The previous database is in ${kept}.`);
  for (const note of hostKey.notes) print(io, note);
  const unset = manifest?.external.filter((name) => !io.env[name] && !io.env[`${name}_FILE`]) ?? [];
  if (manifest === undefined) {
    warn(
      io,
      "An earlier version wrote the backup, without a checksum. Damage inside a value is not detected.",
    );
  } else if (unset.length > 0) {
    warn(
      io,
      `Check that these settings are set for the service on this host: ${unset.join(", ")}. The backed-up service used ` +
        "them, and they and their files are not in the backup.",
    );
  }
  for (const warning of hostKey.warnings) warn(io, warning);
  print(
    io,
    "Memberships, keys, passwords and logins that were revoked after the backup are valid again. " +
      "To end all logins, run `gatehouse-server admin rotate-signing-key --revoke`.",
  );
}

/**
 * Creates the command `gatehouse-server restore`, which replaces the database and the SSH host key of a stopped service
 * with a backup.
 */
export function restoreCommand(io: CommandIo): Command {
  const command = subcommand(
    "restore",
    "Replace the database and the SSH host key of a stopped service with a backup.",
    "/backup/gatehouse.backup",
    { page: "docs/operate/backup.md" },
  )
    .argument("<file>", "Backup to restore, written by `gatehouse-server backup`")
    .action((name: string, flags: Flags) => restoreBackup(io, name, flags));
  addOption(command, settings.databaseUrl);
  addOption(command, settings.sshHostKeyFile);
  return command;
}
