import { realpathSync } from "node:fs";
import { isAbsolute, relative, resolve } from "node:path";
import { withCode, withPeriod } from "@gatehouse-access/sdk/errors";
import {
  DYNAMIC_PROVIDER_TYPE,
  isDefaultInstance,
  isDynamicType,
  makeUrn,
  STACK_TYPE,
  urnName,
} from "../../urn.ts";
import { unsupportedUse } from "../engineDifferences.ts";
import {
  CancelledError,
  ProgramError,
  UnsupportedError,
  type UnsupportedUse,
  UpdateFailedError,
} from "../errors.ts";
import {
  type Command,
  type Diagnostic,
  type EngineEvent,
  failedSteps,
  leftObjects,
  type PreviewOptions,
  type Result,
  reportedSteps,
  type Step,
  summarize,
  type TargetOptions,
  type Writable,
} from "../model.ts";
import { configProps } from "../project.ts";
import { RunLog } from "../runLog.ts";
import { StateCodec, type StoredResource } from "../state/crypter.ts";
import type { FileBackend } from "../state/fileBackend.ts";
import {
  isProviderState,
  pendingWarning,
  REMEDY,
  type ResourceState,
  references,
  withReferences,
} from "../state/resourceState.ts";
import { type Entry, Snapshot } from "../state/snapshot.ts";
import {
  equal,
  fieldDiff,
  markNamed,
  markSecrets,
  type Props,
  refreshedFields,
  shownProps,
} from "../value.ts";
import { Deployment, type HeldPlan } from "./deploy/deployment.ts";
import { Participants } from "./deploy/participants.ts";
import { Limiter, StopSwitch } from "./deploy/runControl.ts";
import { deleteAll, objectStep, reportUntouched } from "./deploy/steps.ts";
import { type MonitorServer, startMonitorServer } from "./program/monitorServer.ts";
import type { Position, ProgramFailure } from "./program/programFailure.ts";
import { ProviderProcess } from "./program/providerProcess.ts";
import { type ProcessSettings, REPORTED, startProgram } from "./program/sdkProcess.ts";
import type { OpenedStack } from "./stackFiles.ts";

export interface RunSettings extends OpenedStack, ProcessSettings {
  readonly command: Command;
  readonly backend: FileBackend;
  readonly parallel: number;
  readonly emit: (event: EngineEvent) => void;
  readonly signal: AbortSignal | undefined;
  /** Start time of the command, as Unix time in milliseconds. */
  readonly started: number;
  /**
   * True after a pass has reported the notes and the pending operations as events. Later passes add them only to their
   * results.
   */
  notesReported?: boolean;
}

export interface Pass {
  readonly log: RunLog;
  readonly stop: StopSwitch;
  readonly snapshot: Snapshot;
  readonly metadata: unknown;
  /** Hash of the state that the pass read; empty if there was no state. */
  readonly base: string;
}

/** The failure of the program in a pass. */
interface ProgramFailed {
  readonly message: string;
  /** True if the diagnostics of the pass contain the errors that the program threw. */
  readonly isExplained: boolean;
  readonly stacks: readonly string[];
}

export interface PassResult {
  readonly steps: readonly Step[];
  readonly outputs: Props;
  readonly programFailed?: ProgramFailed;
  /**
   * The error that ended the pass. Undefined if a step or the program failed, since steps and programs report their own
   * errors.
   */
  readonly failed?: string;
}

/**
 * Reads the state for one pass. A pass is one part of a command, such as the preview or the update.
 * @throws BackendError, PassphraseError, UnsupportedError
 */
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
  if (settings.notesReported) log.diagnostics.push(...known);
  else for (const diagnostic of known) log.diagnostic(diagnostic);
  settings.notesReported = true;
  const stop = new StopSwitch();
  if (signal?.aborted) stop.stop("cancelled");
  signal?.addEventListener("abort", () => stop.stop("cancelled"), { once: true });
  return { log, stop, snapshot, metadata, base: hash };
}

/** @throws UnsupportedError if the state has resources that the engine cannot manage */
function refuseForeignResources(resources: readonly StoredResource[]): void {
  const uses = resources.flatMap((stored) => {
    const state = { urn: String(stored.urn), custom: stored.custom === true, type: String(stored.type) };
    const name = urnName(state.urn);
    const where = `${name} (${state.type}, in the state)`;
    if (stored.external) return [unsupportedUse("external-state", where)];
    if (stored.viewOf) return [unsupportedUse("views", where)];
    if (!state.custom || isDynamicType(state.type)) return [];
    if (!isProviderState(state)) return [unsupportedUse("package", where)];
    if (state.type === DYNAMIC_PROVIDER_TYPE && name === "default") return [];
    return [unsupportedUse(isDefaultInstance(state.urn) ? "package" : "explicit-provider", where)];
  });
  if (uses.length > 0) throw new UnsupportedError(uses);
}

export function stackOutputs(snapshot: Snapshot): Props {
  const root = snapshot.entries().find(({ state }) => state.type === STACK_TYPE && !state.delete);
  return root?.state.outputs ?? {};
}

/** @throws CancelledError, ProgramError or UpdateFailedError, each with the result, if the run failed */
export function conclude(settings: RunSettings, pass: Pass, passResult: PassResult, planned = false): Result {
  const { command, project, stack, createdStack, started } = settings;
  const { log, stop } = pass;
  const { programFailed } = passResult;
  const steps = reportedSteps(passResult.steps);
  const failed = passResult.failed ?? failedSteps(steps);
  const result: Result = {
    engine: "embedded",
    command,
    project: project.name,
    stack,
    ok: failed === undefined && !stop.reason && programFailed === undefined,
    planned,
    createdStack,
    steps,
    summary: summarize(steps),
    outputs: shownProps(passResult.outputs),
    diagnostics: log.diagnostics,
    ...leftObjects(log.diagnostics),
    durationMs: Date.now() - started,
  };
  if (stop.reason === "cancelled") throw new CancelledError(result);
  if (programFailed !== undefined) throw new ProgramError(programFailed.message, result, programFailed);
  if (!result.ok) {
    const isExplained = passResult.failed === undefined && failed !== undefined;
    throw new UpdateFailedError(failed ?? "The run was stopped.", result, isExplained);
  }
  return result;
}

/**
 * Runs the program and applies the resources that it declares. In a dry run, only plans the changes. Reads live objects
 * before the program starts. With the option `refresh`, reads all objects. Otherwise, reads only the objects of pending
 * operations from an earlier run.
 * @throws UnsupportedError, ProjectError; EngineError if targets match no resource, the run deviates from the confirmed
 *   plan, or the provider does not start
 */
export async function deployPass(
  settings: RunSettings,
  pass: Pass,
  dryRun: boolean,
  options: PreviewOptions & { readonly held?: HeldPlan | undefined },
): Promise<PassResult> {
  const { log, stop } = pass;
  const steps = options.refresh ? await refreshPass(settings, pass, options) : [];
  if (!options.refresh) await settlePass(settings, pass, options);
  if (stop.reason) return { steps, outputs: {} };
  return withProvider(settings, log, async (provider, server) => {
    const { held } = options;
    const deployment = new Deployment({ ...settings, ...pass, dryRun, provider, requested: options, held });
    server.monitor = deployment;
    const ready = provider.start();
    const program = startProgram({ ...settings, dryRun }, server.address, log);
    let programFailed: ProgramFailed | undefined;
    try {
      // The program cannot register resources until the provider's process is ready.
      await ready;
      const code = await Promise.race([program.exited, stop.stopped.then(() => undefined)]);
      await stop.settled();
      if (code === 0) await deployment.finished();
      else if (code !== undefined) programFailed = failure(code, settings, log, server.failures);
    } finally {
      await program.stop();
      await stop.settled();
    }
    const { unsupportedUses, misfit } = deployment;
    if (unsupportedUses.length > 0) throw new UnsupportedError(unique(unsupportedUses));
    if (misfit) throw misfit;
    if (dryRun && options.values) deployment.addValues();
    return { steps: log.steps, outputs: deployment.stackOutputs(), programFailed };
  });
}

/** Reports the errors that the program threw as diagnostics of the stack's root resource. */
function failure(
  code: number,
  { project, stack }: RunSettings,
  log: RunLog,
  failures: readonly ProgramFailure[],
): ProgramFailed {
  if (code !== REPORTED || failures.length === 0) {
    const message =
      code === REPORTED ? "The program failed." : `The program ended with the exit code ${code}.`;
    return { message, isExplained: false, stacks: [] };
  }
  const urn = makeUrn(stack, project.name, "", STACK_TYPE, `${project.name}-${stack}`);
  const texts = failures.map((one) => failureText(one, project.root));
  for (const message of texts) log.diagnostic({ severity: "error", message, urn });
  return {
    message: log.mask(texts.join("\n")),
    isExplained: true,
    stacks: failures.flatMap((one) => (one.stack === undefined ? [] : [log.mask(one.stack)])),
  };
}

/** Formats an error of the program as a string: the position in the project, the cause, the remedy and the code. */
function failureText({ cause, remedy, code = "program", positions }: ProgramFailure, root: string): string {
  const place = placeIn(root, positions);
  // The cause is a message from the user's own code, so it is not changed.
  const text = remedy === undefined ? cause : `${withPeriod(cause)} ${remedy}`;
  return withCode(place === undefined ? text : `${place}: ${text}`, { code });
}

/**
 * Returns the innermost position in the project, outside of installed packages, as `file:line:column`. The path is
 * relative to the project directory. Returns undefined if the project contains none of the positions.
 */
function placeIn(root: string, positions: readonly Position[]): string | undefined {
  const folder = realpathSync(root);
  const found = positions
    .map((position) => ({ ...position, file: relative(folder, resolve(folder, position.file)) }))
    .find(({ file }) => !isAbsolute(file) && !/^\.\.|node_modules/.test(file));
  if (!found) return undefined;
  const { file, line, column } = found;
  return [file, line, ...(column === undefined ? [] : [column])].join(":");
}

const unique = (uses: readonly UnsupportedUse[]): UnsupportedUse[] => [
  ...new Map(uses.map((use) => [JSON.stringify(use), use])).values(),
];

/**
 * Reads the live objects into the pass's snapshot.
 * @param failed handles the error of a failed read; by default, this error stops the run
 */
export async function refreshPass(
  settings: RunSettings,
  pass: Pass,
  targets: TargetOptions,
  failed = (step: Writable<Step>, error: Error): void => {
    pass.log.fail(step, error);
    pass.stop.stop("failed");
  },
): Promise<Step[]> {
  const { emit, parallel } = settings;
  emit({ kind: "phase", phase: "refresh" });
  return withProvider(settings, pass.log, async (provider) => {
    await provider.start();
    const participants = new Participants(targets);
    return refreshState({ ...pass, provider, parallel, participants, failed });
  });
}

/**
 * Reads the objects of pending operations from an earlier run, so that this run starts from the live state of these
 * objects.
 */
async function settlePass(settings: RunSettings, pass: Pass, targets: TargetOptions): Promise<void> {
  const participants = new Participants(targets);
  const { log, snapshot } = pass;
  for (const { state } of snapshot.entries()) isSelected(participants, state);
  const left = snapshot.earlierPending.filter(
    ({ type, resource }) => type !== "creating" && isSelected(participants, resource),
  );
  if (left.length === 0) return;
  await refreshPass(
    settings,
    pass,
    { target: left.map(({ resource }) => resource.urn) },
    ({ urn }, error) => {
      const message = `The object could not be read (${error.message}), so its state is unknown; ${REMEDY}.`;
      log.diagnostic({ severity: "warning", message, urn });
    },
  );
}

export async function deletePass(
  settings: RunSettings,
  pass: Pass,
  dryRun: boolean,
  targets: TargetOptions,
): Promise<void> {
  const { log, stop, snapshot } = pass;
  const participants = new Participants(targets);
  const { condemned, staying } = participants.divide(snapshot.entries(), snapshot);
  reportUntouched(log, staying);
  await withProvider(settings, log, async (provider) => {
    const limiter = new Limiter(settings.parallel);
    const refuse = (urn: string): string | undefined => participants.refusal(urn);
    try {
      await deleteAll({ ...pass, provider, limiter, dryRun, deleted: new Set(), refuse }, condemned);
    } finally {
      await stop.settled();
    }
  });
}

/** @throws EngineError (`target`) if a target matches no resource in the state */
export function requireTargets({ snapshot }: Pass, targets: TargetOptions): void {
  const urns = new Set(snapshot.entries().map(({ state }) => state.urn));
  new Participants(targets).requireKnown((urn) => urns.has(urn));
}

/**
 * Calls a function with the provider's process and the monitor server. The provider's process starts on demand. The
 * program and the provider's process connect to the monitor server.
 */
async function withProvider<T>(
  settings: RunSettings,
  log: RunLog,
  work: (provider: ProviderProcess, server: MonitorServer) => Promise<T>,
): Promise<T> {
  const server = await startMonitorServer(log, settings.parallel);
  const provider = new ProviderProcess(settings, server.address, log);
  try {
    return await work(provider, server);
  } finally {
    await provider.stop();
    server.close();
  }
}

interface RefreshOptions extends Pass {
  readonly provider: ProviderProcess;
  readonly parallel: number;
  readonly participants: Participants;
  /** A callback for objects that cannot be read. The state entries of these objects then remain unchanged. */
  readonly failed: (step: Writable<Step>, error: Error) => void;
}

/**
 * Reads the objects of all participating resources into the snapshot. Removes resources whose object no longer exists.
 * Resolves the pending operations of an earlier run, except pending create operations.
 */
async function refreshState(options: RefreshOptions): Promise<Step[]> {
  const { snapshot, log, stop, participants, failed } = options;
  const limiter = new Limiter(options.parallel);
  const steps: Step[] = [];
  const missing = new Map<string, ResourceState>();
  const unread = new Set<string>();
  const read = async (entry: Entry, step: Writable<Step>): Promise<void> => {
    const { state } = entry;
    if (stop.reason) {
      unread.add(state.urn);
      return;
    }
    const finish = log.start("refresh", step);
    try {
      const exists = await refreshOne(options, entry, step);
      if (!exists && !state.delete) missing.set(state.urn, state);
      finish();
    } catch (error) {
      unread.add(state.urn);
      finish((error as Error).message);
      failed(step, error as Error);
    }
  };
  const selected = snapshot.entries().filter(({ state }) => isSelected(participants, state));
  await Promise.all(
    selected.map((entry) => {
      const { state } = entry;
      const step = objectStep(state);
      if (!isProviderState(state)) steps.push(step);
      const isObject = state.custom && !state.external && !state.pendingReplacement;
      return isObject && isDynamicType(state.type) ? limiter.run(() => read(entry, step)) : undefined;
    }),
  );
  removeReferences(snapshot, missing);
  snapshot.settle(
    ({ type, resource }) =>
      type !== "creating" && !unread.has(resource.urn) && isSelected(participants, resource),
  );
  return steps;
}

const isSelected = (participants: Participants, state: ResourceState): boolean =>
  participants.includes(state.urn, references(state));

/** Reads one object. Returns false if the object no longer exists. */
async function refreshOne(options: RefreshOptions, entry: Entry, step: Writable<Step>): Promise<boolean> {
  const { provider, snapshot, log } = options;
  const { key, state } = entry;
  const { initErrors = [], ...healthy } = state;
  const old = { inputs: state.inputs ?? {}, outputs: state.outputs ?? {} };
  const found = await provider.read(state, state);
  if (!found) {
    step.op = "delete";
    step.fields = fieldDiff(state.inputs, undefined);
    await snapshot.end(undefined, [{ drop: key }]);
    return false;
  }
  const inputs = found.inputs ? markSecrets(found.inputs, old.inputs) : old.inputs;
  const marked = markSecrets(markSecrets(found.outputs, inputs), old.outputs);
  const outputs = markNamed(marked, state.additionalSecretOutputs);
  log.hide(outputs);
  const changed = !equal(inputs, old.inputs) || !equal(outputs, old.outputs) || found.id !== state.id;
  if (!changed && initErrors.length === 0) return true;
  if (changed) {
    step.op = "update";
    step.fields = refreshedFields(old, { inputs, outputs });
  }
  const modified = changed ? new Date().toISOString() : state.modified;
  snapshot.change([
    { put: key, state: { ...(healthy as ResourceState), id: found.id, inputs, outputs, modified } },
  ]);
  return true;
}

/**
 * Removes references to missing resources. If the parent of a resource is missing, its nearest existing ancestor
 * becomes the parent.
 */
function removeReferences(snapshot: Snapshot, missing: ReadonlyMap<string, ResourceState>): void {
  for (const { key, state } of snapshot.entries()) {
    if (!references(state).some((urn) => missing.has(urn))) continue;
    let { parent } = state;
    while (parent && missing.has(parent)) parent = missing.get(parent)?.parent;
    const rest = withReferences(state, (urn) => (missing.has(urn) ? undefined : urn));
    snapshot.change([{ put: key, state: { ...rest, parent } }]);
  }
}
