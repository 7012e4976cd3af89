import { UnsupportedError } from "../errors.ts";
import type { Diagnostic, Step } from "../model.ts";
import { configProps } from "../project/stackConfig.ts";
import type { PreviewOptions } from "../stack.ts";
import { WAY_OUT } from "../state/pendingWarning.ts";
import type { TargetOptions } from "../targets.ts";
import { deleteAll, leaveOut } from "./deploy/deletions.ts";
import { Deployment } from "./deploy/deployment.ts";
import type { HeldPlan } from "./deploy/heldPlan.ts";
import { Limiter } from "./deploy/limiter.ts";
import { Selection } from "./deploy/participants.ts";
import { isSelected, refreshState } from "./deploy/refreshState.ts";
import type { Outcome, Pass, RunSettings } from "./pass.ts";
import { type Connection, createConnection } from "./program/connection.ts";
import type { DynamicProvider } from "./program/providerProcess.ts";
import { startProgram } from "./program/startProgram.ts";
import { programFailure, unique } from "./runOutcome.ts";

/** Reads the real objects into the pass's snapshot. A read that fails stops the run, unless that is said otherwise. */
export async function refreshPass(
  settings: RunSettings,
  pass: Pass,
  targets: TargetOptions,
  failed = (step: Step, error: Error): void => {
    pass.log.fail(step, error);
    pass.stop.stop("failed");
  },
): Promise<Step[]> {
  settings.emit({ kind: "phase", phase: "refresh" });
  const connection = await createConnection(settings, pass.log);
  try {
    const provider = await connection.provider;
    const selection = new Selection(targets);
    return await refreshState({ ...pass, provider, parallel: settings.parallel, selection, failed });
  } finally {
    await connection.close();
  }
}

/** Reads the objects of what an earlier run left in flight, so that this one starts from what really is. */
export async function settlePass(settings: RunSettings, pass: Pass, targets: TargetOptions): Promise<void> {
  const selection = new Selection(targets);
  const { log, snapshot } = pass;
  for (const { state } of snapshot.entries()) isSelected(selection, state);
  const left = snapshot.earlierPending.filter(
    ({ type, resource }) => type !== "creating" && isSelected(selection, resource),
  );
  if (left.length === 0) return;
  await refreshPass(
    settings,
    pass,
    { target: left.map(({ resource }) => resource.urn) },
    ({ urn }, error) => {
      const message = `Its object could not be read (${error.message}), so that nobody knows what became of it: ${WAY_OUT}.`;
      log.diagnostic({ severity: "warning", message, urn });
    },
  );
}

/** Deletes what is in the pass's snapshot. */
export async function deletePass(
  settings: RunSettings,
  pass: Pass,
  dryRun: boolean,
  targets: TargetOptions,
): Promise<void> {
  const { log, stop, snapshot } = pass;
  const selection = new Selection(targets);
  const limiter = new Limiter(settings.parallel);
  const refuse = ({ urn }: { urn: string }): string | undefined => selection.refusal(urn);
  const shared = { snapshot, log, stop, limiter, dryRun, deleted: new Set<string>(), refuse };
  let connection: Promise<Connection> | undefined;
  const provider = async (): Promise<DynamicProvider> => {
    connection ??= createConnection(settings, log);
    return (await connection).provider;
  };
  const entries = snapshot.entries();
  const deletable = selection.deletable(entries.map(({ state }) => state));
  const condemned = entries.filter(({ state }) => deletable.has(state.urn));
  leaveOut(
    log,
    entries.filter(({ state }) => !deletable.has(state.urn)),
  );
  try {
    await deleteAll({ ...shared, provider }, condemned, new Map());
  } finally {
    await stop.settled();
    await (await connection)?.close();
  }
}

/** Throws EngineError where a target is no resource in the state. */
export function requireTargets({ snapshot }: Pass, targets: TargetOptions): void {
  const urns = new Set(snapshot.entries().map(({ state }) => state.urn));
  new Selection(targets).requireKnown((urn) => urns.has(urn));
}

/** Runs the program, and makes what it registers real; in a dry run finds out what that would mean. */
export async function deployPass(
  settings: RunSettings,
  pass: Pass,
  dryRun: boolean,
  options: PreviewOptions & { held?: HeldPlan },
): Promise<Outcome> {
  const { project, stack, config, env, parallel } = settings;
  const { log, stop } = pass;
  let deployment: Deployment | undefined;
  const connection = await createConnection(settings, log, (provider) => {
    deployment = new Deployment({
      ...pass,
      stack,
      project: project.name,
      dryRun,
      parallel,
      provider,
      providerInputs: configProps(config),
      targets: options,
      replace: options.replace ?? [],
      ...(options.held && { held: options.held }),
    });
    return deployment;
  });
  const running = deployment as Deployment | undefined;
  if (!running) throw new Error("the deployment was not set up");
  const outcome: Outcome = { steps: log.steps, outputs: {} };
  try {
    const onDiagnostic = (diagnostic: Diagnostic): void => log.diagnostic(diagnostic);
    const { address } = connection;
    const program = startProgram({ project, stack, config, env, address, dryRun, parallel, onDiagnostic });
    try {
      // Without its provider the program could not register anything.
      await connection.provider;
      const code = await Promise.race([program.exited, stop.stopped.then(() => undefined)]);
      await stop.settled();
      if (code === 0) await running.finished();
      else if (code !== undefined) outcome.programFailed = programFailure(code, log);
    } finally {
      await program.stop();
    }
    if (running.unsupportedUses.length > 0) throw new UnsupportedError(unique(running.unsupportedUses));
    if (running.misfit) throw running.misfit;
  } finally {
    await stop.settled();
    await connection.close();
  }
  if (dryRun && options.values) running.addValues();
  outcome.outputs = running.stackOutputs();
  return outcome;
}
