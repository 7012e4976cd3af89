import { type Command, Option } from "commander";
import {
  EngineError,
  type EngineName,
  openStack,
  type StackOptions,
  type TargetOptions,
} from "../engine/index.ts";
import type { Io } from "./outcome.ts";

/** The flags that select a stack only for its configuration. */
export interface ConfigurationFlags {
  readonly stack?: string;
  readonly engine?: EngineName;
}

/** The flags of every command that works on a stack. */
export interface StackFlags extends ConfigurationFlags {
  readonly parallel: number;
}

export function addStackFlags(command: Command): Command {
  return command
    .argument("[folder]", "folder with Pulumi.yaml", ".")
    .option("-s, --stack <name>", "the stack; default PULUMI_STACK or the only one")
    .addOption(engineOption("default cli"))
    .option("--parallel <n>", "objects worked on at once", positive("--parallel"), 16);
}

export const createOption = (): Option =>
  new Option("--create", "make the stack where there is none of that name").default(false);

export const YES = "skip the confirmation prompt; required without a terminal and with --json";

export const allowUnseenOption = (): Option =>
  new Option("--allow-unseen", "ignore what could not be checked").default(false);

const engineOption = (about: string): Option =>
  new Option("--engine <engine>", about).choices(["cli", "embedded"]);

export const stackOptionsOf = (folder: string, { stack, engine, parallel }: StackFlags): StackOptions => {
  return { folder, stack, engine, parallel };
};

export function addConfigurationFlags(command: Command): Command {
  return command
    .option("-s, --stack <name>", "take what the environment leaves open from this stack's configuration")
    .addOption(engineOption("what reads that configuration; default cli"));
}

/**
 * The configuration of the selected stack, by `namespace:key` and with secrets decrypted; empty without `--stack`.
 * @throws EngineError (`usage`) for an engine without a stack, and what opening the stack throws
 */
export async function configurationOf(
  { env }: Io,
  folder: string,
  { stack, engine }: ConfigurationFlags,
): Promise<ReadonlyMap<string, string>> {
  if (stack !== undefined) return (await openStack({ folder, stack, env, engine })).config();
  if (engine !== undefined) throw new EngineError("usage", "--engine is for the stack that --stack names.");
  return new Map();
}

export interface TerraformFlags {
  readonly terraform?: string;
}

/** @param conflicts names of flags that are for Pulumi alone */
export function addTerraformFlag(
  command: Command,
  about: string,
  conflicts: readonly string[] = ["stack", "engine"],
): Command {
  return command.addOption(
    new Option(
      "--terraform <file>",
      `${about}, as "terraform show -json" or "tofu show -json" writes it; - for the standard input`,
    ).conflicts([...conflicts]),
  );
}

export interface TargetFlags {
  readonly target?: string[];
  readonly targetDependents?: boolean;
  readonly exclude?: string[];
  readonly excludeDependents?: boolean;
}

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

export function addReplaceFlag(command: Command): Command {
  return command.option("--replace <urn>", "replace this resource; may be repeated, as --target", collect);
}

export const targetsOf = ({
  target = [],
  targetDependents = false,
  exclude = [],
  excludeDependents = false,
}: TargetFlags): TargetOptions => ({ target, targetDependents, exclude, excludeDependents });

export const collect = (value: string, earlier: readonly string[] = []): string[] => [...earlier, value];

/** Reads a positive whole number. @throws EngineError (`usage`) for any other value */
export const positive =
  (flag: string) =>
  (text: string): number => {
    const number = Number(text);
    if (Number.isInteger(number) && number > 0) return number;
    throw new EngineError("usage", `${flag} is a positive whole number, not ${text}.`);
  };
