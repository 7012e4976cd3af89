import type { Command } from "commander";
import { EngineError, type EngineName, openStack } from "../engine/index.ts";
import { engineOption } from "./flags.ts";
import type { Io } from "./io.ts";

/** The flags that name a stack for its configuration alone, as commander gives them. */
export interface ConfigurationFlags {
  readonly stack?: string;
  readonly engine?: EngineName;
}

/** Adds the flags of {@link ConfigurationFlags}. */
export function addConfigurationFlags(command: Command): Command {
  return command
    .option("-s, --stack <name>", "take what the environment leaves open from this stack's configuration")
    .addOption(engineOption("what reads that configuration; default cli"));
}

/**
 * The configuration of the named stack, by `namespace:key` and with secrets decrypted; empty where no stack is named.
 * @throws EngineError (`usage`) for an engine without a stack, and what opening the stack throws
 */
export async function configurationOf(
  { env }: Io,
  folder: string,
  { stack, engine }: ConfigurationFlags,
): Promise<ReadonlyMap<string, string>> {
  if (stack === undefined) {
    if (engine !== undefined) throw new EngineError("usage", "--engine is for the stack that --stack names.");
    return new Map();
  }
  const opened = await openStack({ folder, stack, env, ...(engine !== undefined && { engine }) });
  return opened.config();
}
