import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { adminCommand } from "./cli/adminCommand.ts";
import { backupCommand } from "./cli/backupCommand.ts";
import { type CommandIo, surviveLostReaders } from "./cli/CommandIo.ts";
import { migrateCommand } from "./cli/migrateCommand.ts";
import { restoreCommand } from "./cli/restoreCommand.ts";
import { serveCommand } from "./cli/serveCommand.ts";
import { packageFile } from "./files/packageFile.ts";
import { OperatorError } from "./OperatorError.ts";

const wrongUsage = 2;

function version(): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/**
 * Runs `gatehouse-server` with the arguments that follow the command's name.
 * @param io by default the environment and streams of the process
 * @returns the exit code: 0 for success, also while `serve` runs; 1 for a failure; 2 for a wrong command line; other
 * codes are in the command's help
 */
export async function main(args: readonly string[], io: CommandIo = process): Promise<number> {
  const program = new Command("gatehouse-server")
    .description("Service for remote SSH access to devices")
    .version(version())
    .showHelpAfterError("(see --help)")
    .addCommand(serveCommand(io))
    .addCommand(adminCommand(io))
    .addCommand(backupCommand(io))
    .addCommand(restoreCommand(io))
    .addCommand(migrateCommand(io));
  redirectOutput(program, io);
  surviveLostReaders(io);
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : wrongUsage;
    if (!(error instanceof OperatorError)) throw error;
    for (const line of error.message.split("\n")) io.stderr.write(`gatehouse-server: ${line}\n`);
    return error.exitCode;
  }
}

/**
 * Redirects the output of a command and its subcommands to `io`, and makes them throw instead of ending the process.
 */
function redirectOutput(command: Command, io: CommandIo): void {
  command.exitOverride();
  command.configureOutput({
    writeOut: (text) => void io.stdout.write(text),
    writeErr: (text) => void io.stderr.write(text),
  });
  for (const child of command.commands) redirectOutput(child, io);
}
