import { CancelledError, ProgramError, UpdateFailedError } from "../errors.ts";
import { shownProps } from "../fieldDiff.ts";
import {
  type Command,
  type Diagnostic,
  type EngineEvent,
  type Result,
  type Step,
  summarise,
  toldSteps,
} from "../model.ts";
import type { Project } from "../project/project.ts";
import { configProps, type StackConfig } from "../project/stackConfig.ts";
import { RunLog } from "../runLog.ts";
import type { Crypter } from "../state/crypter.ts";
import type { FileBackend } from "../state/fileBackend.ts";
import { pendingWarning } from "../state/pendingWarning.ts";
import { Snapshot } from "../state/snapshot.ts";
import { StateCodec } from "../state/stateCodec.ts";
import type { Props } from "../value.ts";
import { StopSwitch } from "./deploy/stopSwitch.ts";
import { refuseForeignResources } from "./refuseForeignResources.ts";
import { failedSteps } from "./runOutcome.ts";

/** What one run is given. */
export type RunSettings = {
  command: Command;
  project: Project;
  stack: string;
  backend: FileBackend;
  crypter: Crypter;
  config: StackConfig;
  env: NodeJS.ProcessEnv;
  parallel: number;
  emit: (event: EngineEvent) => void;
  signal?: AbortSignal;
  createdStack: boolean;
  notes: string[];
  /** Whether a pass has said them, and what an earlier run left: the others have that in their results alone. */
  told?: boolean;
  /** When the command was given, in milliseconds. */
  started: number;
};

/** One pass over the state, and what it came from. */
export type Pass = { log: RunLog; stop: StopSwitch; snapshot: Snapshot; metadata: unknown; base: string };

/** What a pass did, and why it came to no good end, where neither its steps nor the program say it. */
export type Outcome = { steps: Step[]; outputs: Props; programFailed?: string; failed?: string };

/** Reads the state for one pass over it. Throws BackendError, PassphraseError, UnsupportedError. */
export async function openPass(settings: RunSettings): Promise<Pass> {
  const { backend, crypter, config, emit, notes, signal } = settings;
  const checkpoint = await backend.read();
  const resources = checkpoint?.resources ?? [];
  refuseForeignResources(resources);
  const snapshot = new Snapshot(resources, checkpoint?.pendingOperations ?? [], new StateCodec(crypter));
  const log = new RunLog(emit);
  log.hide(configProps(config));
  for (const { state } of snapshot.entries()) {
    log.hide(state.inputs);
    log.hide(state.outputs);
  }
  const known: Diagnostic[] = [
    ...notes.map((message): Diagnostic => ({ severity: "info", message })),
    ...snapshot.earlierPending.map(({ type, resource: { urn } }) => pendingWarning({ type, urn })),
  ];
  if (settings.told) log.diagnostics.push(...known);
  else for (const diagnostic of known) log.diagnostic(diagnostic);
  settings.told = true;
  const stop = new StopSwitch();
  if (signal?.aborted) stop.stop("cancelled");
  signal?.addEventListener("abort", () => stop.stop("cancelled"), { once: true });
  return { log, stop, snapshot, metadata: checkpoint?.metadata ?? {}, base: checkpoint?.hash ?? "" };
}

/** Makes the result of a run. Throws it within CancelledError, ProgramError or UpdateFailedError where it failed. */
export function conclude(
  settings: RunSettings,
  command: Command,
  pass: Pass,
  outcome: Outcome,
  planned = false,
): Result {
  const { project, stack, createdStack, started } = settings;
  const { log, stop } = pass;
  const steps = toldSteps(outcome.steps);
  const failed = outcome.failed ?? failedSteps(steps);
  const result: Result = {
    engine: "embedded",
    command,
    project: project.name,
    stack,
    ok: failed === undefined && !stop.reason && outcome.programFailed === undefined,
    planned,
    createdStack,
    steps,
    summary: summarise(steps),
    outputs: shownProps(outcome.outputs),
    diagnostics: log.diagnostics,
    durationMs: Date.now() - started,
  };
  if (stop.reason === "cancelled") throw new CancelledError(result);
  if (outcome.programFailed !== undefined) throw new ProgramError(outcome.programFailed, result);
  if (!result.ok) throw new UpdateFailedError(failed ?? "The run was stopped.", result);
  return result;
}
