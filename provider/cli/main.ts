import { Command, CommanderError, Help, Option } from "@commander-js/extra-typings";
import { misspelledVariables, reportUsage } from "@gatehouse-access/sdk/errors";
import { EngineError, fileError } from "../engine/index.ts";
import { packageVersion } from "../packageFile.ts";
import { printable } from "../words.ts";
import {
  type ActionOf,
  type CommandOutput,
  type Io,
  outputFailure,
  printError,
  printOutput,
  surviveLostReaders,
} from "./commandOutput.ts";
import { addHelp } from "./help.ts";

const HELP_WIDTH = 80;

const NOTES = `
Exit codes of all commands:
  0    OK
  1    Error: wrong usage, no connection, a failed run of the command itself, a
       plan file that is invalid
  2    Blocking findings: a failed policy test, drift, a refused login, a login
       that differs from the policy, a failed check of doctor, a plan that differs
       from the reviewed plan, a Terraform plan whose own run failed, or another
       part that could not be checked
  130  Interrupted

Environment: GATEHOUSE_URL is the address of the service. GATEHOUSE_API_KEY,
GATEHOUSE_TOKEN, GATEHOUSE_USERNAME and GATEHOUSE_PASSWORD, or GATEHOUSE_OIDC (in
a pipeline) are the credential. GATEHOUSE_TENANT is the id of the namespace. Each
variable also has a _FILE form.
--stack <name> reads missing settings from the configuration of that stack.`;

/** Names of commands and flags in similar tools, each with the equivalent name in `gatehouse`. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  plan: "preview",
  diff: "preview or drift",
  validate: "preview or test",
  check: "review or test",
  diagnose: "doctor",
  lint: "review",
  apply: "up",
  deploy: "up",
  update: "up",
  sync: "refresh",
  delete: "destroy",
  down: "destroy",
  remove: "destroy",
  status: "drift",
  who: "access",
  explain: "access",
  "who-can": "access",
  ssh: "ssh-config",
  export: "import",
  init: "import",
  enroll: "device enroll",
  accept: "device accept",
  devices: "device list",
  namespaces: "namespace list",
  tenants: "namespace list",
  install: "pulumi install or terraform install",
  completions: "completion",
  "--auto-approve": "--yes",
  "--approve": "--yes",
  "--force": "--yes",
  "--non-interactive": "--yes",
  "--output": "--json",
  "--format": "--json",
  "--md": "--markdown",
  "--out": "--save",
  "--namespace": "--tenant",
  "--concurrency": "--parallel",
  "--user": "--login",
};

/**
 * Runs the command `gatehouse` in the working directory of this process. During the run, the function handles the
 * signals that end a process.
 * Policy tests may continue to run after the function returns. So a process that runs only this function must call
 * `process.exit` afterwards.
 * @param args words of the command line
 * @returns the exit code
 * @throws errors that come neither from the engine nor from the service; these errors are bugs
 */
export async function main(args: readonly string[], process: Io): Promise<number> {
  const { env, stdout, stderr } = process;
  const io: Io = {
    env,
    stdout,
    stderr,
    // This getter delays the access to `process.stdin`. The first access opens the stream, which changes the settings
    // of a pipe that other processes may share.
    get stdin() {
      return process.stdin;
    },
  };
  let code = 0;
  const action: ActionOf = (command) =>
    async function (...words) {
      const { json: isJson, verbose: isVerbose } = this.opts();
      const [json, verbose] = [isJson === true, isVerbose === true];
      for (const text of misspelledVariables(Object.keys(env), () => new Command()))
        stderr.write(`warning: ${printable(text)}\n`);
      let output: CommandOutput | undefined;
      try {
        output = await command(io, ...words);
        code = await printOutput(io, output, json);
      } catch (error) {
        // Prints the error as JSON only if standard output has no result yet, so that the output is a single JSON
        // document.
        code = printError(io, error, { json: json && !(output?.result ?? output?.parts), verbose });
      }
    };
  // For `help` with an unknown command, commander would print the help of the program. So the word `help` is removed,
  // and commander reports the unknown command.
  const [first, topic = ""] = args;
  const words = first === "help" && topic !== "" && !LOADERS.has(topic) ? args.slice(1) : args;
  const program = await newProgram(words, io, action);
  reportUsage(program, OTHER_NAMES, (message) => new EngineError("usage", message));
  surviveLostReaders(io);
  try {
    await program.parseAsync(words, { from: "user" });
    const failure = await outputFailure(io);
    if (failure) fileError("output", "write", "the output")(failure);
    return code;
  } catch (error) {
    // Commander throws this error after it has printed the help or the version.
    if (error instanceof CommanderError) return error.exitCode;
    return printError(io, error, { json: args.includes("--json") });
  }
}

/**
 * Returns the command `gatehouse`.
 * @param words the command line. The program contains only the commands that this command line needs, because each
 *   loaded command slows down the start. An empty list loads all commands.
 */
export async function newProgram(
  words: readonly string[],
  { stdout, stderr }: Pick<Io, "stdout" | "stderr">,
  action: ActionOf,
): Promise<Command> {
  const program = new Command("gatehouse")
    .version(packageVersion(), "-V, --version", "Print the version")
    .helpOption("-h, --help", "Print help")
    .commandsGroup("Other commands:")
    .helpCommand("help [command]", "Print the help of a command.")
    .configureHelp({ optionDescription })
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      // Prints nothing: `reportUsage` converts usage errors of commander to EngineErrors, and `printError` prints them.
      outputError: () => {},
      getOutHelpWidth: () => stdout.columns ?? HELP_WIDTH,
      getErrHelpWidth: () => stderr.columns ?? HELP_WIDTH,
    });
  addHelp(program, {
    summary: "Access policy as code: preview, review and apply who can reach which devices.",
    notes: NOTES,
    examples: [
      "gatehouse review policy --stack prod      # show who gains or loses access",
      "gatehouse up policy --stack prod          # apply the program",
      "gatehouse drift policy --stack prod       # find changes made outside the program",
    ],
    page: "docs/get-started/quick-start.md",
  });
  for (const add of await commandsFor(words)) add(program, action);
  return program;
}

/** Returns the description of a flag. Omits the default of a flag if it is `false` or an empty list. */
function optionDescription(option: Option): string {
  const { defaultValue } = option;
  const isUnset = defaultValue === false || (Array.isArray(defaultValue) && defaultValue.length === 0);
  return new Help().optionDescription(isUnset ? new Option(option.flags, option.description) : option);
}

/**
 * The name of the completion command. It loads all other commands, because the completion script contains their names
 * and flags.
 */
const COMPLETION = "completion";

type AddCommands = (program: Command, action: ActionOf) => void;

const loadRunCommands = async () => (await import("./runCommands.ts")).addRunCommands;
const loadInstallCommands = async () => (await import("./installCommands.ts")).addInstallCommands;

const LOADERS: ReadonlyMap<string, () => Promise<AddCommands>> = new Map([
  ["preview", loadRunCommands],
  ["up", loadRunCommands],
  ["refresh", loadRunCommands],
  ["destroy", loadRunCommands],
  ["review", async () => (await import("./reviewCommand.ts")).addReviewCommand],
  ["test", async () => (await import("./policyTests.ts")).addTestCommand],
  ["access", async () => (await import("./accessCommand.ts")).addAccessCommand],
  ["coverage", async () => (await import("./coverageCommand.ts")).addCoverageCommand],
  ["drift", async () => (await import("./driftCommand.ts")).addDriftCommand],
  ["verify", async () => (await import("./verifyCommand.ts")).addVerifyCommand],
  ["expire", async () => (await import("./expireCommand.ts")).addExpireCommand],
  ["rotate", async () => (await import("./rotateCommand.ts")).addRotateCommand],
  ["ssh-config", async () => (await import("./sshConfigCommand.ts")).addSshConfigCommand],
  ["device", async () => (await import("./deviceCommands.ts")).addDeviceCommands],
  ["namespace", async () => (await import("./namespaceCommands.ts")).addNamespaceCommands],
  ["import", async () => (await import("./importCommand.ts")).addImportCommand],
  ["doctor", async () => (await import("./doctorCommand.ts")).addDoctorCommand],
  ["pulumi", loadInstallCommands],
  ["terraform", loadInstallCommands],
  [COMPLETION, async () => (await import("./completionCommand.ts")).addCompletionCommand],
]);

/**
 * Loads only the command that the first word selects, since each loaded command slows down the start. Loads all
 * commands for the help, for the completion script, and for an unknown command. The error for an unknown command
 * suggests similar commands.
 */
function commandsFor([name = ""]: readonly string[]): Promise<readonly AddCommands[]> {
  const load = name === COMPLETION ? undefined : LOADERS.get(name);
  return Promise.all([...new Set(load ? [load] : LOADERS.values())].map((each) => each()));
}
