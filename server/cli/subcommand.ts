import { resolve } from "node:path";
import { Command } from "commander";
import { settings } from "../settings/index.ts";
import { type Flags, readSettings } from "../settings/readConfig.ts";
import type { CommandIo } from "./CommandIo.ts";
import { addOption } from "./serveCommand.ts";

/** Path of the data folder that the flags, or else the environment, name. */
export function folderOf(io: CommandIo, flags: Flags): string {
  return resolve(readSettings(["dataDir"], io.env, flags).dataDir);
}

/** A command for the service of a data folder. */
export function subcommand(name: string, about: string): Command {
  const command = new Command(name).description(about);
  addOption(command, settings.dataDir);
  return command;
}
