import { existsSync, readFileSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe } from "vitest";
import { main } from "../../provider/cli/main.ts";
import type { Result } from "../../provider/engine/index.ts";
import { type CommandResult, callCommand, environmentWithout, runCommand } from "./command.ts";

/** The path of the installed command. */
export const COMMAND = fileURLToPath(new URL("../../provider/bin/gatehouse.js", import.meta.url));

/** The passphrase of the stacks in tests. */
export const PASSPHRASE = "correct horse battery staple";

/** True if this machine has the Pulumi CLI. */
export const pulumiOnPath = (process.env.PATH ?? "")
  .split(delimiter)
  .some((folder) => existsSync(join(folder, "pulumi")));

type Engine = "embedded" | "cli";

/** Both engines, each with a label for test titles. If an engine is not installed, its label contains the reason. */
export const engines: readonly { engine: Engine; available: boolean; label: string }[] = [
  { engine: "embedded", available: true, label: "embedded engine" },
  {
    engine: "cli",
    available: pulumiOnPath,
    label: pulumiOnPath ? "Pulumi CLI" : "Pulumi CLI (skipped: pulumi is not on the PATH)",
  },
];

/** Declares the same tests for both engines. Skips the tests of an engine that is not installed. */
export function describeEngines(
  title: string,
  options: NonNullable<Parameters<typeof describe>[1]> & object,
  tests: (engine: Engine) => void,
): void {
  for (const { engine, available, label } of engines)
    describe.skipIf(!available)(`${title}, with the ${label}`, options, () => tests(engine));
}

export interface StackOptions {
  readonly program: string;
  /** The folder in which the stack's backend stores states. */
  readonly folder: string;
  readonly engine: Engine;
  readonly env: Record<string, string>;
  /** Name of the stack. Default: a random name. */
  readonly name?: string;
  /**
   * True if commands run as separate processes, which policy tests require. With the Pulumi CLI, commands always do so.
   */
  readonly spawned?: boolean;
}

/** Replaces the environment, so that a command has only the settings in `env`. */
const settings = (env: Record<string, string>) => ({
  ...environmentWithout("GATEHOUSE_", "PULUMI_"),
  ...env,
});

/**
 * Runs `gatehouse` to its end in this process, which takes half the time of a separate process. Use {@link
 * spawnGatehouse} for policy tests: in one process, Node.js would load a policy file only once for all tests, and the
 * file would import a second copy of the package. Use it also with the Pulumi CLI, which inherits the environment of
 * its parent process.
 */
export function gatehouse(args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> {
  return callCommand(main, args, { env: settings(env) });
}

/** Runs the installed command as a process. */
export function spawnGatehouse(
  args: readonly string[],
  env: Record<string, string> = {},
  cwd?: string,
): Promise<CommandResult> {
  return runCommand([COMMAND, ...args], { env: settings(env), ...(cwd !== undefined && { cwd }) });
}

/** Returns {@link gatehouse}, or {@link spawnGatehouse} if the engine requires a process. */
export const gatehouseBy = (engine: Engine) => (engine === "cli" ? spawnGatehouse : gatehouse);

/**
 * Returns false for settings files. A copy of a program's folder must omit them: stacks of other tests create and
 * delete settings files and temporary files at any time.
 */
export const isNoSettings = (file: string): boolean => !/Pulumi\.[^/\\]+\.yaml(\.|$)/.test(file);

/** A stack of one program, with a separate folder for its state. */
export class Stack {
  readonly #options: StackOptions;
  readonly name: string;

  constructor(options: StackOptions) {
    this.#options = options;
    this.name = options.name ?? `test-${Math.random().toString(36).slice(2, 8)}`;
  }

  /** Runs `gatehouse <command>`. `env` is added for this run. */
  async run(args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> {
    const { program, folder, engine, env: common, spawned = false } = this.#options;
    const [command = "", ...more] = args;
    const run = spawned ? spawnGatehouse : gatehouseBy(engine);
    const place = command === "rotate" ? ["--folder", program] : [program];
    return run([command, ...place, "--stack", this.name, "--engine", engine, ...more], {
      PULUMI_BACKEND_URL: `file://${folder}`,
      PULUMI_CONFIG_PASSPHRASE: PASSPHRASE,
      ...common,
      ...env,
    });
  }

  /** Runs a command with `--json` and returns the result. Throws an error unless the exit code is `expected`. */
  async result<T = Result>(
    args: readonly string[],
    env: Record<string, string> = {},
    expected = 0,
  ): Promise<T> {
    const run = await this.run([...args, "--json"], env);
    if (run.code !== expected) {
      throw new Error(`gatehouse ${args.join(" ")} ended with ${run.code}:\n${run.stdout}\n${run.stderr}`);
    }
    return JSON.parse(run.stdout) as T;
  }

  /** Applies the resources of a policy, without a preview, which would double the time. */
  apply(policy: object, ...flags: readonly string[]): Promise<Result> {
    return this.result(["up", "--yes", "--skip-preview", ...flags], { POLICY: JSON.stringify(policy) });
  }

  /** Returns the text of the state file. */
  stateText(project: string): string {
    return readFileSync(
      join(this.#options.folder, ".pulumi", "stacks", project, `${this.name}.json`),
      "utf8",
    );
  }

  /** Removes the settings file that the engine wrote into the program's folder. */
  dispose(): void {
    rmSync(join(this.#options.program, `Pulumi.${this.name}.yaml`), { force: true });
  }
}

/** Returns each step other than "same" as a short line, for example `update key username`. */
export function changesOf(result: Result): string[] {
  return result.steps
    .filter((step) => step.op !== "same")
    .map((step) => [step.op, step.name, ...step.fields.map((field) => field.path)].join(" "))
    .sort();
}
