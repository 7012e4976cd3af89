import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { adminCommand } from "./cli/adminCommand.ts";
import { backupCommand } from "./cli/backupCommand.ts";
import { migrateCommand } from "./cli/migrateCommand.ts";
import { restoreCommand } from "./cli/restoreCommand.ts";
import { serveCommand } from "./cli/serveCommand.ts";
import { OperatorError } from "./OperatorError.ts";
import { packageFile } from "./packageFile.ts";

const wrongUsage = 2;

function version(): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/**
 * Runs `gatehouse-server` with the arguments that follow the command's name.
 * @returns the exit code, 0 also while `serve` goes on: 1 when something is wrong, 2 for a wrong command
 * line, another one where the command's help says so
 */
export async function main(args: readonly string[]): Promise<number> {
  const program = new Command("gatehouse-server")
    .description("Service for remote SSH access to devices")
    .version(version())
    .showHelpAfterError("(--help says more)")
    .addCommand(serveCommand())
    .addCommand(adminCommand())
    .addCommand(backupCommand())
    .addCommand(restoreCommand())
    .addCommand(migrateCommand());
  throwInsteadOfExit(program);
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : wrongUsage;
    if (!(error instanceof OperatorError)) throw error;
    for (const line of error.message.split("\n")) process.stderr.write(`gatehouse-server: ${line}\n`);
    return error.exitCode;
  }
}

function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) throwInsteadOfExit(child);
}
