import { Command } from "commander";
import { type Flags, readSettings } from "../settings/readConfig.ts";
import { settings } from "../settings/settings.ts";
import type { CommandIo } from "./CommandIo.ts";
import { addOption } from "./serveCommand.ts";

/** Path of the data folder, from the flags or else from the environment. */
export function folderOf(io: CommandIo, flags: Flags): string {
  return readSettings(["dataDir"], io.env, flags).dataDir;
}

/** A command with the flag `--data-dir`. */
export function subcommand(name: string, about: string): Command {
  const command = new Command(name).description(about);
  addOption(command, settings.dataDir);
  return command;
}
