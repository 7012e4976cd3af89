import { type Command, Option } from "commander";
import { EngineError, type EngineName, type StackOptions, type TargetOptions } from "../engine/index.ts";

/** The flags of every command that works on a stack, as commander gives them. */
export type StackFlags = { stack?: string; engine?: EngineName; parallel: number };

/** Adds the folder of the program, and the flags of {@link StackFlags}. */
export function addStackFlags(command: Command): Command {
  return command
    .argument("[folder]", "folder with Pulumi.yaml", ".")
    .option("-s, --stack <name>", "the stack; default PULUMI_STACK or the only one")
    .addOption(engineOption("default cli"))
    .option("--parallel <n>", "objects worked on at once", positive("--parallel"), 16);
}

/** The flag that makes a missing stack. */
export const createOption = (): Option =>
  new Option("--create", "make the stack where there is none of that name").default(false);

/** The flag that chooses the engine. */
export const engineOption = (about: string): Option =>
  new Option("--engine <engine>", about).choices(["cli", "embedded"]);

/** The options of the engine that the flags stand for. */
export function stackOptionsOf(folder: string, { stack, engine, parallel }: StackFlags): StackOptions {
  return {
    folder,
    parallel,
    ...(stack === undefined ? {} : { stack }),
    ...(engine === undefined ? {} : { engine }),
  };
}

/** The flags that limit a run to some resources, as commander gives them. */
export type TargetFlags = {
  target?: string[];
  targetDependents?: boolean;
  exclude?: string[];
  excludeDependents?: boolean;
};

/** Adds the flags that limit a run to some resources. */
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

/** Adds the flag that forces a replacement. */
export function addReplaceFlag(command: Command): Command {
  return command.option("--replace <urn>", "replace this resource; may be repeated, as --target", collect);
}

/** The options that the flags stand for. */
export function targetsOf(flags: TargetFlags): TargetOptions {
  return {
    target: flags.target ?? [],
    targetDependents: flags.targetDependents ?? false,
    exclude: flags.exclude ?? [],
    excludeDependents: flags.excludeDependents ?? false,
  };
}

/** Reads a flag that may be repeated. */
export const collect = (value: string, earlier: readonly string[] = []): string[] => [...earlier, value];

/** Reads a flag that is a positive whole number; for others it throws EngineError (`usage`). */
export const positive =
  (flag: string) =>
  (text: string): number => {
    const number = Number(text);
    if (Number.isInteger(number) && number > 0) return number;
    throw new EngineError("usage", `${flag} is a positive whole number, not ${text}.`);
  };
