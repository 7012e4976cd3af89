import { once } from "node:events";
import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, isAbsolute, join } from "node:path";
import * as sdkErrors from "@pulumi/pulumi/automation/errors.js";
import { LocalWorkspace, PulumiCommand } from "@pulumi/pulumi/automation/index.js";
import { EngineError } from "../errors.ts";
import { findOnPath, signalGroup, startInGroup } from "../processes.ts";
import { chooseBackend, type Project, requireBackendFolder } from "../project.ts";

export interface CliWorkspace {
  readonly workspace: LocalWorkspace;
  /** A message for the user with the location of the state. */
  readonly note: string;
}

/**
 * Opens a project with the Pulumi CLI that is on the PATH.
 * @throws BackendError if no backend is configured, or its folder does not exist
 */
export async function openWorkspace(project: Project, env: NodeJS.ProcessEnv): Promise<CliWorkspace> {
  const backend = await chooseBackend(project, env);
  const { url, source } = backend;
  // The Pulumi CLI does not create the folder either, but its error message does not contain the setting to fix.
  if (url.startsWith("file://")) await requireBackendFolder(backend, project);
  const given = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const envVars: Record<string, string> = { PULUMI_SKIP_UPDATE_CHECK: "true", ...Object.fromEntries(given) };
  if (!envVars.PULUMI_BACKEND_URL && source === "pulumi login") envVars.PULUMI_BACKEND_URL = url;
  const pulumiCommand = await commandOf(env);
  const workspace = await LocalWorkspace.create({ workDir: project.root, envVars, pulumiCommand });
  return { workspace, note: `State backend: ${url} (${source}).` };
}

/**
 * Finds the Pulumi CLI on the PATH in `env`. The SDK accepts only a CLI in a directory named `bin`. For other
 * directories, the SDK searches the PATH of this process.
 */
async function commandOf(env: NodeJS.ProcessEnv): Promise<PulumiCommand> {
  const path = findOnPath("pulumi", env);
  const skipVersionCheck = Boolean(env.PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK);
  const folder = path === undefined ? "" : dirname(path);
  const root = basename(folder) === "bin" ? { root: dirname(folder) } : {};
  const command = PulumiCommand.get({ ...root, skipVersionCheck }).catch((cause: Failure) => {
    throw new EngineError("pulumi_cli", cause.commandResult?.stderr ?? cause.message, { cause });
  });
  return withOwnRuns(await command);
}

export async function stackNames(workspace: LocalWorkspace): Promise<string[]> {
  return (await workspace.listStacks()).map((stack) => stack.name);
}

interface CommandResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
}

/** An error of the Automation API. If a CLI command failed, the error contains the output of the command. */
export type Failure = Error & { readonly commandResult?: Pick<CommandResult, "stderr"> };

type Run = (
  args: string[],
  folder: string,
  env: Readonly<Record<string, string>>,
  onOutput?: (text: string) => void,
  onError?: (text: string) => void,
  signal?: AbortSignal,
) => Promise<CommandResult>;

const { createCommandError } = sdkErrors as unknown as {
  createCommandError(result: CommandResult & { toString(): string }): Error;
};

/** The CLI commands that run the program or change the state. */
const RUNS: ReadonlySet<string | undefined> = new Set(["preview", "up", "refresh", "destroy"]);

/**
 * Changes the Automation API so that each CLI run starts in a separate process group. If this process exits before the
 * CLI, the CLI receives a cancel signal, or is terminated if the run was already cancelled. The CLI and its plugins
 * then exit cleanly and release the stack's lock. Signals from the terminal do not reach the CLI. The CLI's output goes
 * to files, since a write to a pipe without a reader would kill the CLI.
 */
function withOwnRuns(command: PulumiCommand): PulumiCommand {
  const sdk = command as unknown as { run: Run };
  const others = sdk.run.bind(command);
  sdk.run = (args, folder, env, ...rest) => {
    const [, , signal] = rest;
    return RUNS.has(args[0])
      ? runPulumi(command.command, [...args, "--non-interactive"], folder, env, signal)
      : others(args, folder, env, ...rest);
  };
  return command;
}

async function runPulumi(
  command: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal | undefined,
): Promise<CommandResult> {
  signal?.throwIfAborted();
  const folder = await mkdtemp(join(tmpdir(), "gatehouse-"));
  const paths = ["stdout", "stderr"].map((name) => join(folder, name));
  const files = await Promise.all(paths.map((path) => open(path, "wx", 0o600)));
  try {
    const child = startInGroup(
      command,
      args,
      { cwd, env: environmentOf(command, env), stdio: ["ignore", ...files.map(({ fd }) => fd)] },
      "SIGTERM",
    );
    const cancel = (): void => signalGroup(child, "SIGINT");
    signal?.addEventListener("abort", cancel, { once: true });
    const [code] = (await once(child, "exit")) as [number | null];
    signal?.removeEventListener("abort", cancel);
    const [stdout = "", stderr = ""] = await Promise.all(paths.map((path) => readFile(path, "utf8")));
    const result = { stdout, stderr, code: code ?? 128 };
    if (code === 0) return result;
    throw createCommandError({
      ...result,
      toString: () => `pulumi ${args[0]} failed with exit code ${result.code}\n${stdout}\n${stderr}`,
    });
  } finally {
    await Promise.all(files.map((file) => file.close()));
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Returns the same environment variables as the Automation API. The directory of the CLI is first on the PATH, so that
 * the CLI finds the plugins in this directory.
 */
function environmentOf(command: string, env: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const all: NodeJS.ProcessEnv = { ...process.env, ...env, PULUMI_AUTOMATION_API: "true" };
  return isAbsolute(command) ? { ...all, PATH: dirname(command) + delimiter + all.PATH } : all;
}
