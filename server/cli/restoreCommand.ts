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
    throw new OperatorError("The service keeps its data in PostgreSQL: restore that with `pg_restore`");
  }
  // Loaded on demand, like the service.
  const { restore } = await import("./restore.ts");
  const backup = resolve(name);
  const restored = await restore({ backup, dataDir, database: database.file, secret: values.secret });
  const { users, namespaces, devices, kept } = restored;
  print(
    io,
    `${database.file} is now ${backup}: ${users} users, ${namespaces} namespaces, ${devices} devices`,
  );
  if (kept !== undefined) print(io, `The database before is kept as ${kept}`);
  print(
    io,
    "What was revoked since the backup is valid again: memberships, keys, passwords and logins. " +
      "`gatehouse-server admin rotate-signing-key --revoke` ends all logins",
  );
}

/** `gatehouse-server restore`: replaces the database of a stopped service by a backup. */
export function restoreCommand(io: CommandIo): Command {
  const command = subcommand(
    "restore",
    "Put a backup in the place of the database, while no service runs on it",
  )
    .argument("<file>", "File that `backup` wrote")
    .action((name: string, flags: Flags) => restoreBackup(io, name, flags));
  addOption(command, settings.databaseUrl);
  return command;
}
