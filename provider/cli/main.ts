import { Command, CommanderError } from "commander";
import { EngineError } from "../engine/index.ts";
import { packageVersion } from "../packageFile.ts";
import { type Io, outputFailure, surviveLostReaders } from "./io.ts";
import { type ActionOf, type Outcome, printError, printOutcome } from "./outcome.ts";

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
      let outcome: Outcome | undefined;
      try {
        outcome = await command(io, ...words);
        code = await printOutcome(io, outcome, json);
      } catch (error) {
        // The result is on stdout then, which has one JSON document at most.
        code = printError(io, error, json && !(outcome?.result ?? outcome?.parts));
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
  for (const add of await commandsFor(args)) add(program, action);
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

/** Adds commands to the program. */
type AddCommands = (program: Command, action: ActionOf) => void;

const ADDERS: readonly { readonly names: readonly string[]; readonly load: () => Promise<AddCommands> }[] = [
  {
    names: ["preview", "up", "refresh", "destroy"],
    load: async () => (await import("./runCommands.ts")).addRunCommands,
  },
  { names: ["drift"], load: async () => (await import("./driftCommand.ts")).addDriftCommand },
  { names: ["review"], load: async () => (await import("./reviewCommand.ts")).addReviewCommand },
  { names: ["access"], load: async () => (await import("./accessCommand.ts")).addAccessCommand },
  { names: ["ssh-config"], load: async () => (await import("./sshConfigCommand.ts")).addSshConfigCommand },
  { names: ["test"], load: async () => (await import("./policyTests.ts")).addTestCommand },
  { names: ["import"], load: async () => (await import("./importCommand.ts")).addImportCommand },
  { names: ["coverage"], load: async () => (await import("./coverageCommand.ts")).addCoverageCommand },
  {
    names: ["pulumi", "terraform"],
    load: async () => (await import("./installCommands.ts")).addInstallCommands,
  },
];

/** Loads the command that the first word names, since each one costs time at the start; else all, for help. */
function commandsFor([name = ""]: readonly string[]): Promise<readonly AddCommands[]> {
  const named = ADDERS.filter(({ names }) => names.includes(name));
  return Promise.all((named.length > 0 ? named : ADDERS).map(({ load }) => load()));
}
