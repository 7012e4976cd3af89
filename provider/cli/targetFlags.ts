import type { Command } from "commander";
import type { TargetOptions } from "../engine/index.ts";
import { collect } from "./flags.ts";

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
