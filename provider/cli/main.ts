import { Command, CommanderError } from "commander";
import { EngineError } from "../engine/index.ts";
import { packageVersion } from "../packageFile.ts";
import { addAccessCommand } from "./accessCommand.ts";
import { addCoverageCommand } from "./coverageCommand.ts";
import { addDriftCommand } from "./driftCommand.ts";
import { addImportCommand } from "./importCommand.ts";
import { addInstallCommands } from "./installCommands.ts";
import { type Io, outputFailure, surviveLostReaders } from "./io.ts";
import { type ActionOf, printError, printOutcome } from "./outcome.ts";
import { addTestCommand } from "./policyTests.ts";
import { addReviewCommand } from "./reviewCommand.ts";
import { addRunCommands } from "./runCommands.ts";
import { addSshConfigCommand } from "./sshConfigCommand.ts";

/** Width of the lines of help outside of a terminal. */
const HELP_WIDTH = 80;

/**
 * Runs the command `gatehouse` to its end, in the working folder of this process. Meanwhile it handles the signals that
 * end a process. Policy tests that it loaded may still be doing something afterwards: a process that only runs this
 * must be ended with the exit code.
 * @param args words of the command line
 * @returns the exit code
 * @throws errors that are neither the engine's nor the service's: they are bugs
 */
export async function main(args: readonly string[], io: Io): Promise<number> {
  let code = 0;
  const action: ActionOf = (command) =>
    async function (...words) {
      const json = this.opts().json === true;
      try {
        code = await printOutcome(io, await command(io, ...words), json);
      } catch (error) {
        code = printError(io, error, json);
      }
    };
  const program = new Command("gatehouse")
    .description("Access policy as code")
    .version(packageVersion())
    .showHelpAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      getOutHelpWidth: () => io.stdout.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => io.stderr.columns ?? HELP_WIDTH,
    });
  addRunCommands(program, action);
  addDriftCommand(program, action);
  addReviewCommand(program, action);
  addAccessCommand(program, action);
  addSshConfigCommand(program, action);
  addTestCommand(program, action);
  addImportCommand(program, action);
  addCoverageCommand(program, action);
  addInstallCommands(program, action);
  surviveLostReaders(io);
  try {
    await program.parseAsync(args, { from: "user" });
    const failure = await outputFailure(io);
    if (failure) throw new EngineError("output", `The output could not be written: ${failure.message}`);
    return code;
  } catch (error) {
    // Commander has printed it.
    if (error instanceof CommanderError) return error.exitCode;
    return printError(io, error, false);
  }
}
