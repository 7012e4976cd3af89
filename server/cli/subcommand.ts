import { addHelpEnd, type HelpEnd } from "@gatehouse-access/sdk/errors";
import { Command } from "commander";
import { type Flags, readSettings } from "../settings/readConfig.ts";
import { settings } from "../settings/settings.ts";
import type { CommandIo } from "./CommandIo.ts";
import { addOption } from "./serveCommand.ts";

/** Returns the path of the data folder from the flags. Without the flag, returns the path from the environment. */
export function folderOf(io: CommandIo, flags: Flags): string {
  return readSettings(["dataDir"], io.env, flags).dataDir;
}

/**
 * Creates a command with the flag `--data-dir`.
 * @param path names of the command's parents and of the command, such as `admin user create`
 * @param example arguments of the command in the example of its help
 */
export function subcommand(
  path: string,
  about: string,
  example = "",
  { page = "docs/operate/install.md", notes }: Partial<HelpEnd> = {},
): Command {
  const command = new Command(path.split(" ").at(-1)).description(about);
  addOption(command, settings.dataDir);
  const words = ["gatehouse-server", path, example, "--data-dir /var/lib/gatehouse"];
  const line = words.filter((word) => word !== "").join(" ");
  return addHelpEnd(command, { notes, examples: [line], page });
}
