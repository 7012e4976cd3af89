import { ConcurrentUpdateError } from "@pulumi/pulumi/automation/index.js";
import { CancelledError, EngineError, LockedError, PassphraseError, UpdateFailedError } from "../errors.ts";
import { failedSteps, hasChanges, type Result } from "../model.ts";
import type { RunLog } from "../runLog.ts";

/** The error of a run of the CLI that failed, for the result so far. */
export function runFailure(failure: unknown, result: Result, log: RunLog, isAborted: boolean): EngineError {
  const { command, steps, diagnostics } = result;
  if (isAborted) return new CancelledError(result);
  if (failure instanceof ConcurrentUpdateError || /currently locked by/.test(String(failure))) {
    return lockedError(String(failure));
  }
  const said = diagnostics.some((diagnostic) => diagnostic.severity === "error");
  if (!said && !hasChanges(result))
    return new EngineError("cli", log.mask(String((failure as Error).message)));
  const verb = command === "drift" ? "refresh" : command;
  return new UpdateFailedError(failedSteps(steps) ?? `pulumi ${verb} failed.`, result);
}

/** The CLI says it several times, with a line for each lock of a file backend. */
function lockedError(text: string): LockedError {
  const locks = [...text.matchAll(/^ +(?:file:\/\/)?([^\s?]+)\S*: created by (.+) at (\S+)$/gm)];
  const holders = locks.map(([, path, who, since]) => `${path}: ${who} since ${since}`);
  return LockedError.heldBy([...new Set(holders)]);
}

/**
 * The error of a configuration that the CLI could not read. It repeats the errors alone that the CLI wrote: other lines
 * may have the configuration.
 */
export function configFailure(error: unknown): EngineError {
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
