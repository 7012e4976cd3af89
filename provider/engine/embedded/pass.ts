import { CancelledError, ProgramError, UnsupportedError, UpdateFailedError } from "../errors.ts";
import { shownProps } from "../fieldDiff.ts";
import {
  type Command,
  type Diagnostic,
  type EngineEvent,
  failedSteps,
  type Result,
  type Step,
  summarise,
  toldSteps,
} from "../model.ts";
import { configProps } from "../project/stackConfig.ts";
import { RunLog } from "../runLog.ts";
import type { FileBackend } from "../state/fileBackend.ts";
import { pendingWarning } from "../state/pendingWarning.ts";
import { isProviderState } from "../state/resourceState.ts";
import { Snapshot } from "../state/snapshot.ts";
import { StateCodec, type StoredResource } from "../state/stateCodec.ts";
import { unsupportedUse } from "../unsupported.ts";
import { DYNAMIC_PROVIDER_TYPE, STACK_TYPE, urnName } from "../urn.ts";
import type { Props } from "../value.ts";
import { StopSwitch } from "./deploy/stopSwitch.ts";
import { isDynamicType } from "./program/goal.ts";
import type { ProcessSettings } from "./program/sdkProcess.ts";
import type { OpenedStack } from "./stackFiles.ts";

/** What one run is given. */
export interface RunSettings extends OpenedStack, ProcessSettings {
  readonly command: Command;
  readonly backend: FileBackend;
  readonly parallel: number;
  readonly emit: (event: EngineEvent) => void;
  readonly signal: AbortSignal | undefined;
  /** When the command was given, in milliseconds. */
  readonly started: number;
  /** Set once a pass has told the notes and the pending operations; later passes have them in their results alone. */
  told?: boolean;
}

/** One pass over the state. */
export interface Pass {
  readonly log: RunLog;
  readonly stop: StopSwitch;
  readonly snapshot: Snapshot;
  readonly metadata: unknown;
  /** Hash of the state that was read; empty where there was none. */
  readonly base: string;
}

/** What a pass did. */
export interface Outcome {
  readonly steps: readonly Step[];
  readonly outputs: Props;
  /** Why the program failed. */
  readonly programFailed?: string;
  /** Why the pass failed, where neither its steps nor the program say it. */
  readonly failed?: string;
}

/** Reads the state for one pass over it. @throws BackendError, PassphraseError, UnsupportedError */
export async function openPass(settings: RunSettings): Promise<Pass> {
  const { backend, crypter, config, emit, notes, signal } = settings;
  const { resources = [], pendingOperations = [], metadata = {}, hash = "" } = (await backend.read()) ?? {};
  refuseForeignResources(resources);
  const snapshot = new Snapshot(resources, pendingOperations, new StateCodec(crypter));
  const log = new RunLog(emit);
  log.hide(configProps(config));
  for (const { state } of snapshot.entries()) {
    log.hide(state.inputs);
    log.hide(state.outputs);
  }
  const known: Diagnostic[] = [
    ...notes.map((message): Diagnostic => ({ severity: "info", message })),
    ...snapshot.earlierPending.map(({ type, resource }) => pendingWarning(type, resource.urn)),
  ];
  if (settings.told) log.diagnostics.push(...known);
  else for (const diagnostic of known) log.diagnostic(diagnostic);
  settings.told = true;
  const stop = new StopSwitch();
  if (signal?.aborted) stop.stop("cancelled");
  signal?.addEventListener("abort", () => stop.stop("cancelled"), { once: true });
  return { log, stop, snapshot, metadata, base: hash };
}

/** @throws UnsupportedError where the state has resources that the engine could not look after */
function refuseForeignResources(resources: readonly StoredResource[]): void {
  const uses = resources.flatMap((stored) => {
    const state = { urn: String(stored.urn), custom: stored.custom === true, type: String(stored.type) };
    const name = urnName(state.urn);
    const where = `${name} (${state.type}, in the state)`;
    if (stored.external) return [unsupportedUse("external-state", where)];
    if (stored.viewOf) return [unsupportedUse("views", where)];
    if (!state.custom || isDynamicType(state.type)) return [];
    if (!isProviderState(state)) return [unsupportedUse("package", where)];
    const isOurs = state.type === DYNAMIC_PROVIDER_TYPE && name === "default";
    return isOurs ? [] : [unsupportedUse("explicit-provider", where)];
  });
  if (uses.length > 0) throw new UnsupportedError(uses);
}

/** The outputs of the stack's root resource in the state. */
export function stackOutputs(snapshot: Snapshot): Props {
  const root = snapshot.entries().find(({ state }) => state.type === STACK_TYPE && !state.delete);
  return root?.state.outputs ?? {};
}

/**
 * Makes the result of a run.
 * @throws CancelledError, ProgramError or UpdateFailedError, each with the result, where the run came to no good end
 */
export function conclude(settings: RunSettings, pass: Pass, outcome: Outcome, planned = false): Result {
  const { command, project, stack, createdStack, started } = settings;
  const { log, stop } = pass;
  const { programFailed } = outcome;
  const steps = toldSteps(outcome.steps);
  const failed = outcome.failed ?? failedSteps(steps);
  const result: Result = {
    engine: "embedded",
    command,
    project: project.name,
    stack,
    ok: failed === undefined && !stop.reason && programFailed === undefined,
    planned,
    createdStack,
    steps,
    summary: summarise(steps),
    outputs: shownProps(outcome.outputs),
    diagnostics: log.diagnostics,
    durationMs: Date.now() - started,
  };
  if (stop.reason === "cancelled") throw new CancelledError(result);
  if (programFailed !== undefined) throw new ProgramError(programFailed, result);
  if (!result.ok) throw new UpdateFailedError(failed ?? "The run was stopped.", result);
  return result;
}
