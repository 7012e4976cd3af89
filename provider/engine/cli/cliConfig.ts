import type { Stack } from "@pulumi/pulumi/automation/index.js";
import { EngineError, PassphraseError } from "../errors.ts";

/**
 * The configuration of a stack as the Pulumi CLI reads it, as plain text by `namespace:key`. Throws PassphraseError,
 * EngineError (`cli`).
 */
export async function readCliConfig(handle: Stack): Promise<ReadonlyMap<string, string>> {
  try {
    const config = await handle.getAllConfig();
    return new Map(Object.entries(config).map(([key, { value }]) => [key, value]));
  } catch (error) {
    throw refusal(error);
  }
}

/** Of what the CLI wrote only its errors are told: the rest may be the configuration. */
function refusal(error: unknown): EngineError {
  const { stderr = "" } = (error as { commandResult?: { stderr?: string } }).commandResult ?? {};
  if (/incorrect passphrase/.test(stderr)) {
    return new PassphraseError("The passphrase is not the one this stack was made with.");
  }
  const said = stderr.split("\n").filter((line) => line.startsWith("error: "));
  return new EngineError(
    "cli",
    ["The Pulumi CLI could not read the stack's configuration.", ...said].join(" "),
  );
}
