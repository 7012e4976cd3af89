import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { fetchDatabase } from "../admin/adminClient.ts";
import { OperatorError } from "../OperatorError.ts";
import type { Flags } from "../settings/readConfig.ts";
import { type CommandIo, print } from "./CommandIo.ts";
import { folderOf, subcommand } from "./subcommand.ts";

async function backup(io: CommandIo, name: string, flags: Flags): Promise<void> {
  const file = resolve(name);
  if (existsSync(file)) throw new OperatorError(`${file} already exists. Choose another file.`);
  await fetchDatabase(folderOf(io, flags), file);
  print(io, `Wrote the database to ${file} (${statSync(file).size} bytes).`);
  print(
    io,
    "A restore needs the instance secret, which is not in the backup. Keep a copy of the secret in another place: the file " +
      "`secret` of the data folder, or the value of GATEHOUSE_SECRET or GATEHOUSE_SECRET_FILE.",
  );
}

/** `gatehouse-server backup`: copies the database of a running service, which the data folder identifies. */
export function backupCommand(io: CommandIo): Command {
  return subcommand("backup", "Copy the database of the running service to a file.", "/backup/gatehouse.db")
    .argument("<file>", "New file for the backup")
    .action((name: string, flags: Flags) => backup(io, name, flags));
}
