import { Command, CommanderError } from "commander";
import { EngineError } from "../engine/index.ts";
import { packageVersion } from "../packageFile.ts";
import {
  type ActionOf,
  type Io,
  type Outcome,
  outputFailure,
  printError,
  printOutcome,
  surviveLostReaders,
} from "./outcome.ts";

const HELP_WIDTH = 80;

/**
 * Runs the command `gatehouse` to its end, in the working folder of this process. Meanwhile it handles the signals that
 * end a process. Policy tests that it loaded may still be doing something afterwards: a process that only runs this
 * must be ended with the exit code.
 * @param args words of the command line
 * @returns the exit code
 * @throws errors that are neither the engine's nor the service's: they are bugs
 */
export async function main(args: readonly string[], process: Io): Promise<number> {
  const { env, stdout, stderr } = process;
  const io: Io = {
    env,
    stdout,
    stderr,
    // The first access opens the stream, which changes the settings of a pipe that other processes may share.
    get stdin() {
      return process.stdin;
    },
  };
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
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => stdout.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => stderr.columns ?? HELP_WIDTH,
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

type AddCommands = (program: Command, action: ActionOf) => void;

const loadRunCommands = async () => (await import("./runCommands.ts")).addRunCommands;
const loadInstallCommands = async () => (await import("./installCommands.ts")).addInstallCommands;

const LOADERS: ReadonlyMap<string, () => Promise<AddCommands>> = new Map([
  ["preview", loadRunCommands],
  ["up", loadRunCommands],
  ["refresh", loadRunCommands],
  ["destroy", loadRunCommands],
  ["drift", async () => (await import("./driftCommand.ts")).addDriftCommand],
  ["review", async () => (await import("./reviewCommand.ts")).addReviewCommand],
  ["access", async () => (await import("./accessCommand.ts")).addAccessCommand],
  ["ssh-config", async () => (await import("./sshConfigCommand.ts")).addSshConfigCommand],
  ["test", async () => (await import("./policyTests.ts")).addTestCommand],
  ["import", async () => (await import("./importCommand.ts")).addImportCommand],
  ["coverage", async () => (await import("./coverageCommand.ts")).addCoverageCommand],
  ["pulumi", loadInstallCommands],
  ["terraform", loadInstallCommands],
]);

/** Loads the command that the first word names, since each one costs time at the start; else all, for help. */
function commandsFor([name = ""]: readonly string[]): Promise<readonly AddCommands[]> {
  const named = LOADERS.get(name);
  return Promise.all([...new Set(named ? [named] : LOADERS.values())].map((load) => load()));
}
