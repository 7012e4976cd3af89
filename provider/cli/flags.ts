import { type Command, Option } from "commander";
import {
  ENGINES,
  EngineError,
  type EngineName,
  openStack,
  type StackOptions,
  type TargetOptions,
} from "../engine/index.ts";
import type { Io } from "./commandOutput.ts";

/** The flags that select a stack for commands that only read the configuration of the stack. */
export interface ConfigurationFlags {
  readonly stack?: string;
  readonly engine?: EngineName;
}

/** The flag of commands that preview a program. */
export interface ExpiryFlags {
  readonly requireEnforcedExpiry?: boolean;
}

export const requireEnforcedExpiryOption = (): Option =>
  new Option(
    "--require-enforced-expiry",
    "Fail if the server does not enforce expiresAt and owner (default: GATEHOUSE_REQUIRE_ENFORCED_EXPIRY)",
  );

/** Returns the streams and the environment of a command with its flag {@link ExpiryFlags}. */
export const withExpiryFlag = (io: Io, { requireEnforcedExpiry }: ExpiryFlags): Io =>
  requireEnforcedExpiry ? { ...io, env: { ...io.env, GATEHOUSE_REQUIRE_ENFORCED_EXPIRY: "true" } } : io;

export const deleteClaimedOption = (): Option =>
  new Option(
    "--delete-claimed",
    "Also delete objects that another stack has declared last (default: GATEHOUSE_DELETE_CLAIMED)",
  );

/** Returns the streams and the environment of a command with its flag {@link deleteClaimedOption}. */
export const withClaimedFlag = (io: Io, { deleteClaimed }: { readonly deleteClaimed?: boolean }): Io =>
  deleteClaimed ? { ...io, env: { ...io.env, GATEHOUSE_DELETE_CLAIMED: "true" } } : io;

/** The flags of every command that works on a stack. */
export interface StackFlags extends ConfigurationFlags {
  readonly parallel: number;
}

export const FOLDER = "Project directory: the folder with Pulumi.yaml";

export const addStackFlags = (command: Command): Command =>
  addRunFlags(command.argument("[folder]", FOLDER, "."));

/** Adds the flags that select a stack, without the argument for its folder. */
export function addRunFlags(command: Command): Command {
  return command
    .option("-s, --stack <name>", "Stack name (default: PULUMI_STACK, or the only stack)")
    .addOption(engineOption("Engine that runs the program (default: GATEHOUSE_ENGINE, or cli)"))
    .option("--parallel <n>", "Maximum number of concurrent operations", positive("--parallel"), 16);
}

export const createOption = (): Option =>
  new Option("--create", "Create the stack if it does not exist").default(false);

export const YES = "Skip the confirmation; required without a terminal and with --json";

export const JSON_RESULT = "Print the result as JSON";

export const allowIncompleteOption = (): Option =>
  new Option("--allow-incomplete", "Do not block on parts that could not be checked").default(false);

const engineOption = (about: string): Option => new Option("--engine <engine>", about).choices(ENGINES);

export const stackOptionsOf = (folder: string, { stack, engine, parallel }: StackFlags): StackOptions => {
  return { folder, stack, engine, parallel };
};

export function addConfigurationFlags(command: Command): Command {
  return command
    .option("-s, --stack <name>", "Read missing settings from the configuration of this stack")
    .addOption(
      engineOption("Engine that reads the configuration of the stack (default: GATEHOUSE_ENGINE, or cli)"),
    );
}

/**
 * Returns the configuration of the selected stack by `namespace:key`, with decrypted secrets. Empty without `--stack`.
 * @throws EngineError (`usage`) for `--engine` without `--stack`; the errors of opening the stack
 */
export async function configurationOf(
  { env }: Io,
  folder: string,
  { stack, engine }: ConfigurationFlags,
): Promise<ReadonlyMap<string, string>> {
  if (stack !== undefined) return (await openStack({ folder, stack, env, engine })).config();
  if (engine !== undefined) throw new EngineError("usage", "--engine needs --stack. Add --stack <name>.");
  return new Map();
}

export interface TerraformFlags {
  readonly terraform?: string;
}

/** Adds the flag `--terraform`. @param conflicts names of flags that only apply to Pulumi */
export function addTerraformFlag(
  command: Command,
  about: string,
  conflicts: readonly string[] = ["stack", "engine"],
): Command {
  return command.addOption(
    new Option(
      "--terraform <file>",
      `${about}: the output of "terraform show -json" or "tofu show -json"; - for the standard input`,
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
    .option(
      "-t, --target <urn>",
      "Limit the run to this resource; * and ** match any text; repeatable",
      collect,
    )
    .option("--target-dependents", "Include the resources that depend on a target")
    .option(
      "--exclude <urn>",
      "Exclude this resource from the run; * and ** match any text; repeatable",
      collect,
    )
    .option("--exclude-dependents", "Exclude the resources that depend on an excluded resource");
}

export function addReplaceFlag(command: Command): Command {
  return command.option(
    "--replace <urn>",
    "Replace this resource; * and ** match any text; repeatable",
    collect,
  );
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
    throw new EngineError("usage", `${flag} must be a positive whole number, not ${JSON.stringify(text)}.`);
  };
