import { type Command, Option } from "commander";
import { EngineError, type EngineName, type StackOptions, type TargetOptions } from "../engine/index.ts";

/** The flags of every command that works on a stack, as commander gives them. */
export interface StackFlags {
  readonly stack?: string;
  readonly engine?: EngineName;
  readonly parallel: number;
}

/** Adds the argument for the program's folder, and the flags of {@link StackFlags}. */
export function addStackFlags(command: Command): Command {
  return command
    .argument("[folder]", "folder with Pulumi.yaml", ".")
    .option("-s, --stack <name>", "the stack; default PULUMI_STACK or the only one")
    .addOption(engineOption("default cli"))
    .option("--parallel <n>", "objects worked on at once", positive("--parallel"), 16);
}

/** The flag by which a missing stack is made. */
export const createOption = (): Option =>
  new Option("--create", "make the stack where there is none of that name").default(false);

/** What `--yes` means, for a command that writes. */
export const YES = "skip the confirmation prompt; required without a terminal and with --json";

/** The flag by which what could not be looked at is no reason to fail. */
export const allowUnseenOption = (): Option =>
  new Option("--allow-unseen", "ignore what could not be checked").default(false);

/** The flag that chooses the engine. */
export const engineOption = (about: string): Option =>
  new Option("--engine <engine>", about).choices(["cli", "embedded"]);

/** The options of {@link StackFlags} for the engine. */
export function stackOptionsOf(folder: string, { stack, engine, parallel }: StackFlags): StackOptions {
  return {
    folder,
    parallel,
    ...(stack === undefined ? {} : { stack }),
    ...(engine === undefined ? {} : { engine }),
  };
}

/** The flags that limit a run to some resources, as commander gives them. */
export interface TargetFlags {
  readonly target?: string[];
  readonly targetDependents?: boolean;
  readonly exclude?: string[];
  readonly excludeDependents?: boolean;
}

/** Adds the flags of {@link TargetFlags}. */
export function addTargetFlags(command: Command): Command {
  return command
    .option("-t, --target <urn>", "only this resource; may be repeated; * and ** stand for any text", collect)
    .option("--target-dependents", "what depends on a target as well")
    .option(
      "--exclude <urn>",
      "all but this resource; may be repeated, with * and ** as in --target",
      collect,
    )
    .option("--exclude-dependents", "leave out what depends on an excluded resource as well");
}

/** Adds the flag that replaces a resource. */
export function addReplaceFlag(command: Command): Command {
  return command.option("--replace <urn>", "replace this resource; may be repeated, as --target", collect);
}

/** The options of {@link TargetFlags} for the engine. */
export function targetsOf(flags: TargetFlags): TargetOptions {
  return {
    target: flags.target ?? [],
    targetDependents: flags.targetDependents ?? false,
    exclude: flags.exclude ?? [],
    excludeDependents: flags.excludeDependents ?? false,
  };
}

/** Collects the values of a flag that may be repeated. */
export const collect = (value: string, earlier: readonly string[] = []): string[] => [...earlier, value];

/**
 * Reads the value of a flag that is a positive whole number.
 * @throws EngineError (`usage`) for any other value
 */
export const positive =
  (flag: string) =>
  (text: string): number => {
    const number = Number(text);
    if (Number.isInteger(number) && number > 0) return number;
    throw new EngineError("usage", `${flag} is a positive whole number, not ${text}.`);
  };
