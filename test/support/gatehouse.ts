import { existsSync, readFileSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { main } from "../../provider/cli/main.ts";
import type { Result } from "../../provider/engine/index.ts";
import { type CommandResult, callCommand, environmentWithout, runCommand } from "./command.ts";

const COMMAND = fileURLToPath(new URL("../../provider/bin/gatehouse.js", import.meta.url));

/** The engines that this machine can run. */
export const pulumiOnPath = (process.env.PATH ?? "")
  .split(delimiter)
  .some((folder) => existsSync(join(folder, "pulumi")));

export type Engine = "embedded" | "cli";

/** Both engines, with what a test's name says where the second one is missing. */
export const engines: readonly { engine: Engine; available: boolean; label: string }[] = [
  { engine: "embedded", available: true, label: "embedded engine" },
  {
    engine: "cli",
    available: pulumiOnPath,
    label: pulumiOnPath ? "Pulumi CLI" : "Pulumi CLI (skipped: there is no pulumi on the PATH)",
  },
];

export interface StackOptions {
  readonly program: string;
  /** Where the states are. */
  readonly folder: string;
  readonly engine: Engine;
  readonly env: Record<string, string>;
  /** Default: one of its own. */
  readonly name?: string;
  /** Whether its commands are processes, as beside policy tests; those by the Pulumi CLI always are. */
  readonly spawned?: boolean;
}

/** Of settings a command of a test has only those of `env`. */
const settings = (env: Record<string, string>) => ({
  ...environmentWithout("GATEHOUSE_", "PULUMI_"),
  ...env,
});

/**
 * Runs `gatehouse` with the arguments to its end, in this process, which takes half as long as one of its own. What runs
 * policy tests is for {@link spawnGatehouse}: Node.js would load their files once for all tests, with another copy of
 * the package than the sources that the test runner loads. So is the Pulumi CLI, which has this process's settings too.
 */
export function gatehouse(args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> {
  return callCommand(main, args, { env: settings(env) });
}

/** Runs the command as it is installed, as a process. */
export function spawnGatehouse(
  args: readonly string[],
  env: Record<string, string> = {},
  cwd?: string,
): Promise<CommandResult> {
  return runCommand([COMMAND, ...args], { env: settings(env), ...(cwd !== undefined && { cwd }) });
}

/** {@link gatehouse}, or a process where the engine asks for one. */
export const gatehouseBy = (engine: Engine) => (engine === "cli" ? spawnGatehouse : gatehouse);

/**
 * For a copy of a program's folder: without the settings that stacks of tests put there, which come and go at any time,
 * as do the files that they are written to first.
 */
export const isNoSettings = (file: string): boolean => !/Pulumi\.[^/\\]+\.yaml(\.|$)/.test(file);

/** A stack of one program, with a state folder of its own. */
export class Stack {
  readonly #options: StackOptions;
  readonly name: string;

  constructor(options: StackOptions) {
    this.#options = options;
    this.name = options.name ?? `test-${Math.random().toString(36).slice(2, 8)}`;
  }

  /** Runs `gatehouse <command>`; `env` is added for this run. */
  async run(args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> {
    const { program, folder, engine, env: common, spawned = false } = this.#options;
    const [command = "", ...more] = args;
    const run = spawned ? spawnGatehouse : gatehouseBy(engine);
    return run([command, program, "--stack", this.name, "--engine", engine, ...more], {
      PULUMI_BACKEND_URL: `file://${folder}`,
      PULUMI_CONFIG_PASSPHRASE: "correct horse battery staple",
      ...common,
      ...env,
    });
  }

  /** Runs a command with `--json`; fails the test when it does not end with `expected`. */
  async result(args: readonly string[], env: Record<string, string> = {}, expected = 0): Promise<Result> {
    const run = await this.run([...args, "--json"], env);
    if (run.code !== expected) {
      throw new Error(`gatehouse ${args.join(" ")} ended with ${run.code}:\n${run.stdout}\n${run.stderr}`);
    }
    return JSON.parse(run.stdout) as Result;
  }

  /** The state file, as text. */
  stateText(project: string): string {
    return readFileSync(
      join(this.#options.folder, ".pulumi", "stacks", project, `${this.name}.json`),
      "utf8",
    );
  }

  /** Removes the settings file that the engine wrote beside the program. */
  dispose(): void {
    rmSync(join(this.#options.program, `Pulumi.${this.name}.yaml`), { force: true });
  }
}

/** The steps that are more than "same", as short lines: `update key username`. */
export function changesOf(result: Result): string[] {
  return result.steps
    .filter((step) => step.op !== "same")
    .map((step) => [step.op, step.name, ...step.fields.map((field) => field.path)].join(" "))
    .sort();
}
