import { resolve } from "node:path";
import type { Command } from "commander";
import { OperatorError } from "../OperatorError.ts";
import { databaseAt, type Flags, readSettings } from "../settings/readConfig.ts";
import { settings } from "../settings/settings.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { addOption } from "./serveCommand.ts";
import { subcommand } from "./subcommand.ts";

async function restoreBackup(io: CommandIo, name: string, flags: Flags): Promise<void> {
  const values = readSettings(["dataDir", "databaseUrl", "databaseConnections", "secret"], io.env, flags);
  const { dataDir } = values;
  const database = databaseAt(values.databaseUrl, dataDir, values.databaseConnections);
  if (!("file" in database)) {
    throw new OperatorError("The service uses PostgreSQL. Restore the database with `pg_restore`.");
  }
  // This module is loaded on demand, so that other commands start faster.
  const { restore } = await import("./restore.ts");
  const backup = resolve(name);
  const restored = await restore({ backup, dataDir, database: database.file, secret: values.secret });
  const { users, namespaces, devices, kept } = restored;
  print(
    io,
    `Restored ${database.file} from ${backup}: ${users} users, ${namespaces} namespaces, ${devices} devices.`,
  );
  if (kept !== undefined) print(io, `The previous database is in ${kept}.`);
  print(
    io,
    "Memberships, keys, passwords and logins that were revoked after the backup are valid again. " +
      "To end all logins, run `gatehouse-server admin rotate-signing-key --revoke`.",
  );
}

/** `gatehouse-server restore`: replaces the database of a stopped service with a backup. */
export function restoreCommand(io: CommandIo): Command {
  const command = subcommand(
    "restore",
    "Replace the database of a stopped service with a backup.",
    "/backup/gatehouse.db",
  )
    .argument("<file>", "Backup to restore, written by `gatehouse-server backup`")
    .action((name: string, flags: Flags) => restoreBackup(io, name, flags));
  addOption(command, settings.databaseUrl);
  return command;
}
