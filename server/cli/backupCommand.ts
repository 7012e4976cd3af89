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
  if (existsSync(file)) throw new OperatorError(`${file} is there already: name a new file`);
  await fetchDatabase(folderOf(io, flags), file);
  print(io, `The database is in ${file} (${statSync(file).size} bytes)`);
  print(
    io,
    "It is of use only with the instance secret, which is not in it: keep the file `secret` of the data folder, or " +
      "what GATEHOUSE_SECRET or GATEHOUSE_SECRET_FILE gives the service, as well, in another place",
  );
}

/** `gatehouse-server backup`: copies the database of the service that runs on a data folder. */
export function backupCommand(io: CommandIo): Command {
  return subcommand("backup", "Copy the database of the running service into a file")
    .argument("<file>", "File to write; there must be none of that name")
    .action((name: string, flags: Flags) => backup(io, name, flags));
}
