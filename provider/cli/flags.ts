import { type Command, Option, type OptionValues } from "@commander-js/extra-typings";
import { ENGINES, EngineError, openStack, type StackOptions, type TargetOptions } from "../engine/index.ts";
import type { Io } from "./commandOutput.ts";

type NoFlags = Record<never, never>;

/** The flags of a command, by name. `F` is the function that declares the command: `FlagsOf<typeof reviewCommand>`. */
export type FlagsOf<F extends (...words: never[]) => object> =
  ReturnType<F> extends Command<infer _Words, infer Flags, infer _Global> ? Flags : never;

/** The flags that select a stack, for commands that only read the configuration of the stack. */
export type ConfigurationFlags = FlagsOf<typeof addConfigurationFlags<[], NoFlags>>;

export const requireEnforcedExpiryOption = () =>
  new Option(
    "--require-enforced-expiry",
    "Fail if the server does not enforce expiresAt and owner (default: GATEHOUSE_REQUIRE_ENFORCED_EXPIRY)",
  );

/**
 * Returns the streams and the environment of a command. If the flag {@link requireEnforcedExpiryOption} is set, the
 * environment contains its value.
 */
export const withExpiryFlag = (
  io: Io,
  { requireEnforcedExpiry }: { readonly requireEnforcedExpiry?: boolean },
): Io =>
  requireEnforcedExpiry ? { ...io, env: { ...io.env, GATEHOUSE_REQUIRE_ENFORCED_EXPIRY: "true" } } : io;

export const deleteClaimedOption = () =>
  new Option(
    "--delete-claimed",
    "Also delete objects that another stack has declared last (default: GATEHOUSE_DELETE_CLAIMED)",
  );

/**
 * Returns the streams and the environment of a command. If the flag {@link deleteClaimedOption} is set, the environment
 * contains its value.
 */
export const withClaimedFlag = (io: Io, { deleteClaimed }: { readonly deleteClaimed?: boolean }): Io =>
  deleteClaimed ? { ...io, env: { ...io.env, GATEHOUSE_DELETE_CLAIMED: "true" } } : io;

/** The flags of every command that works on a stack. */
export type StackFlags = FlagsOf<typeof addRunFlags<[], NoFlags>>;

export const FOLDER = "Project directory: the folder with Pulumi.yaml";

export const addStackFlags = <Words extends unknown[], Flags extends OptionValues>(
  command: Command<Words, Flags>,
) => addRunFlags(command.argument("[folder]", FOLDER, "."));

/** Adds the flags that select and run a stack, but not the argument for the project directory. */
export function addRunFlags<Words extends unknown[], Flags extends OptionValues>(
  command: Command<Words, Flags>,
) {
  return command
    .option("-s, --stack <name>", "Stack name (default: PULUMI_STACK, or the only stack)")
    .addOption(engineOption("Engine that runs the program (default: GATEHOUSE_ENGINE, or cli)"))
    .option("--parallel <n>", "Maximum number of concurrent operations", positive("--parallel"), 16)
    .option("--verbose", "Print the call stacks of errors in the program");
}

export const createOption = () =>
  new Option("--create", "Create the stack if it does not exist").default(false);

export const YES = "Skip the confirmation; required without a terminal and with --json";

export const JSON_RESULT = "Print the result as JSON";

export const allowIncompleteOption = () =>
  new Option("--allow-incomplete", "Do not block on parts that could not be checked").default(false);

const engineOption = (about: string) => new Option("--engine <engine>", about).choices(ENGINES);

export const stackOptionsOf = (folder: string, { stack, engine, parallel }: StackFlags): StackOptions => {
  return { folder, stack, engine, parallel };
};

export function addConfigurationFlags<Words extends unknown[], Flags extends OptionValues>(
  command: Command<Words, Flags>,
) {
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

/** Returns the flag `--terraform`. @param conflicts names of flags that only apply to Pulumi */
export const terraformOption = (about: string, conflicts: readonly string[] = ["stack", "engine"]) =>
  new Option(
    "--terraform <file>",
    `${about}: the output of "terraform show -json" or "tofu show -json"; - for the standard input`,
  ).conflicts([...conflicts]);

export const withStackOption = () =>
  new Option(
    "--with-stack <stack>",
    "Also treat the objects of this stack as managed. Set <stack> to a stack of the project, or to folder:stack; repeatable",
  ).argParser(collect);

export const noTestsOption = () => new Option("--no-tests", "Skip the policy tests (*.policy.ts)");

export type TargetFlags = FlagsOf<typeof addTargetFlags<[], NoFlags>>;

export function addTargetFlags<Words extends unknown[], Flags extends OptionValues>(
  command: Command<Words, Flags>,
) {
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

export const replaceOption = () =>
  new Option("--replace <urn>", "Replace this resource; * and ** match any text; repeatable").argParser(
    collect,
  );

export const targetsOf = ({
  target = [],
  targetDependents,
  exclude = [],
  excludeDependents,
}: TargetFlags): TargetOptions => ({
  target,
  targetDependents: targetDependents === true,
  exclude,
  excludeDependents: excludeDependents === true,
});

export const collect = (value: string, earlier: readonly string[] = []): string[] => [...earlier, value];

/** Reads a positive whole number. @throws EngineError (`usage`) for any other value */
export const positive =
  (flag: string) =>
  (text: string): number => {
    const number = Number(text);
    if (Number.isInteger(number) && number > 0) return number;
    throw new EngineError("usage", `${flag} must be a positive whole number, not ${JSON.stringify(text)}.`);
  };
