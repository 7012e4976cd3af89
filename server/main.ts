import { addHelpEnd, reportUsage } from "@gatehouse-access/sdk/errors";
import { Command, CommanderError } from "commander";
import { adminCommand } from "./cli/adminCommand.ts";
import { backupCommand } from "./cli/backupCommand.ts";
import { type CommandIo, surviveLostReaders } from "./cli/CommandIo.ts";
import { migrateCommand } from "./cli/migrateCommand.ts";
import { restoreCommand } from "./cli/restoreCommand.ts";
import { serveCommand } from "./cli/serveCommand.ts";
import { packageVersion } from "./files/packageFile.ts";
import { OperatorError } from "./OperatorError.ts";

const WRONG_USAGE = 2;

/**
 * Command and flag names of other programs, with the equivalent names in this program. The error for an unknown name
 * suggests the equivalent name.
 */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  start: "serve",
  run: "serve",
  server: "serve",
  dump: "backup",
  export: "backup",
  import: "restore",
  migrate: "migrate-to-postgresql",
  user: "admin user",
  users: "admin user list",
  "setup-link": "admin setup-link",
  audit: "admin audit",
  add: "create",
  new: "create",
  ls: "list",
  remove: "delete",
  rm: "delete",
  passwd: "reset-password",
  "--folder": "--data-dir",
  "--data": "--data-dir",
  "--mail": "--email",
};

const NOTES = `
Exit codes of all commands:
  0  OK
  1  Error
  2  Wrong usage
  3  Incomplete copy: the service wrote rows during migrate-to-postgresql`;

/**
 * Runs `gatehouse-server` with the arguments after the command's name.
 * @param io default: the environment and streams of the process
 * @returns the exit code. 0: success, also while `serve` continues to run. 1: failure. 2: wrong usage. The help of a
 *   command lists its other codes.
 */
export async function main(args: readonly string[], io: CommandIo = process): Promise<number> {
  const program = newProgram(io);
  reportUsage(program, OTHER_NAMES, (message) => new UsageError(message));
  surviveLostReaders(io);
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    // Commander throws this error after it has printed the help or the version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
    if (!(error instanceof OperatorError)) throw error;
    for (const line of error.message.split("\n")) io.stderr.write(`gatehouse-server: ${line}\n`);
    return error.exitCode;
  }
}

/** The error that Commander throws for wrong usage of the command. */
class UsageError extends OperatorError {
  override readonly name = "UsageError";
  override readonly exitCode = WRONG_USAGE;
}

/** Returns the command `gatehouse-server`. */
export function newProgram(io: CommandIo): Command {
  const program = new Command("gatehouse-server")
    .description("Service for remote SSH access to devices.")
    .version(packageVersion(), "-V, --version", "Print the version")
    .addCommand(serveCommand(io))
    .addCommand(adminCommand(io))
    .addCommand(backupCommand(io))
    .addCommand(restoreCommand(io))
    .addCommand(migrateCommand(io));
  addHelpEnd(program, {
    notes: NOTES,
    examples: [
      "gatehouse-server serve --data-dir /var/lib/gatehouse",
      "gatehouse-server admin setup-link --data-dir /var/lib/gatehouse",
      "gatehouse-server backup /backup/gatehouse.backup --data-dir /var/lib/gatehouse",
    ],
    page: "docs/operate/install.md",
  });
  configure(program, io);
  return program;
}

/** Configures the help of a command and its subcommands, and redirects their output to `io`. */
function configure(command: Command, io: CommandIo): void {
  command.helpOption("-h, --help", "Print help");
  if (command.commands.length > 0) command.helpCommand("help [command]", "Print the help of a command.");
  command.configureOutput({
    writeOut: (text) => void io.stdout.write(text),
    writeErr: (text) => void io.stderr.write(text),
    // Print nothing here, because `main` reports these errors.
    outputError: () => {},
  });
  for (const child of command.commands) configure(child, io);
}
