import { ProtectedError } from "../../errors.ts";
import { fieldDiff } from "../../fieldDiff.ts";
import type { Step } from "../../model.ts";
import type { RunLog } from "../../runLog.ts";
import { isProviderState, type ResourceState } from "../../state/resourceState.ts";
import type { Entry, Mutation, Snapshot } from "../../state/snapshot.ts";
import { deletionBlockers } from "../../state/topologicalOrder.ts";
import { urnName } from "../../urn.ts";
import { isDynamicType } from "../program/goal.ts";
import { type DynamicProvider, ProviderGoneError } from "../program/providerProcess.ts";
import type { Limiter } from "./limiter.ts";
import type { StopSwitch } from "./stopSwitch.ts";

/** What deleting needs. `deleted` holds the urns deleted in this run; it is added to. */
export type DeletionContext = {
  /** Asked for only where a real object goes. */
  provider: () => Promise<DynamicProvider>;
  snapshot: Snapshot;
  log: RunLog;
  stop: StopSwitch;
  limiter: Limiter;
  dryRun: boolean;
  deleted: Set<string>;
  /** Why a resource may not be deleted in this run. */
  refuse?: (state: ResourceState) => string | undefined;
};

/** True where somebody must be asked to remove a real object. */
function hasObject(state: ResourceState, deleted: ReadonlySet<string>): boolean {
  if (!state.custom || state.external || state.retainOnDelete || state.pendingReplacement) return false;
  if (!isDynamicType(state.type)) return false;
  return !(state.deletedWith && deleted.has(state.deletedWith));
}

/**
 * Deletes one object and applies the mutation. Returns false where it failed, which is reported and stops the run.
 */
export async function deleteEntry(
  context: DeletionContext,
  entry: Entry,
  after: Mutation,
  step: Step,
): Promise<boolean> {
  const { snapshot, log } = context;
  const { state } = entry;
  context.deleted.add(state.urn);
  if (!hasObject(state, context.deleted)) {
    if (!context.dryRun) snapshot.change([after]);
    return true;
  }
  if (context.dryRun) return true;
  const target = { urn: state.urn, type: state.type, name: urnName(state.urn) };
  const finish = log.start("delete", target);
  const operation = await snapshot.begin("deleting", state);
  try {
    const old = { inputs: state.inputs ?? {}, outputs: state.outputs ?? {} };
    const provider = await context.provider();
    await provider.delete(target, state.id ?? "", old);
  } catch (error) {
    if (!(error instanceof ProviderGoneError)) await snapshot.end(operation, []);
    log.fail(step, error as Error);
    finish((error as Error).message);
    context.stop.stop("failed");
    return false;
  }
  await snapshot.end(operation, [after]);
  finish();
  return true;
}

/** What stands against deleting a resource. The old object of a replacement was looked at before the new was made. */
function refusal(context: DeletionContext, state: ResourceState): Error | undefined {
  if (state.protect && !state.delete && !state.pendingReplacement)
    return new ProtectedError("it is protected and would be deleted", state.urn);
  const reason = context.refuse?.(state);
  return reason === undefined ? undefined : new Error(reason);
}

/** The step that tells of a deletion, or undefined for what is not shown: default providers. */
export function deletionStep(state: ResourceState): Step {
  const step: Step = {
    op: "delete",
    urn: state.urn,
    type: state.type,
    name: urnName(state.urn),
    fields: fieldDiff(state.inputs, undefined),
  };
  if (state.id) step.id = state.id;
  return step;
}

/** Tells that resources stay as they are, because they take no part in this run. */
export function leaveOut(log: RunLog, entries: readonly Entry[]): void {
  for (const { state } of entries) {
    if (isProviderState(state) || state.delete || state.pendingReplacement) continue;
    log.step({ ...deletionStep(state), op: "same", fields: [] });
  }
}

/**
 * Deletes all the given resources, each after all that depend on it, as many at once as the limiter allows.
 * `replaced` are the urns whose old object goes because a new one was made: they have a step of their own already.
 */
export async function deleteAll(
  context: DeletionContext,
  condemned: Entry[],
  replaced: ReadonlyMap<string, Step>,
): Promise<void> {
  const { log, stop, limiter } = context;
  const steps = new Map<Entry, Step>();
  for (const entry of condemned) {
    const { state } = entry;
    context.deleted.add(state.urn);
    const known = state.delete ? replaced.get(state.urn) : undefined;
    const step = known ?? deletionStep(state);
    steps.set(entry, step);
    if (!known && !isProviderState(state) && !state.pendingReplacement) log.step(step);
    const refused = refusal(context, state);
    if (!refused) continue;
    log.fail(step, refused);
    stop.stop("failed");
  }
  if (context.dryRun && condemned.length > 0) context.snapshot.wouldChange();
  if (context.dryRun || stop.reason) return;
  const blockers = deletionBlockers(condemned.map((entry) => entry.state));
  const entryOf = new Map(condemned.map((entry) => [entry.state, entry]));
  const done = new Map<Entry, Promise<boolean>>();
  const remove = (entry: Entry): Promise<boolean> => {
    const known = done.get(entry);
    if (known) return known;
    const work = (async (): Promise<boolean> => {
      const before = blockers.get(entry.state) ?? [];
      const gone = await Promise.all(before.map((state) => remove(entryOf.get(state) as Entry)));
      const skip = (): false => {
        const step = steps.get(entry);
        // The new object of a replacement was made: its step stays, the old one goes with the next run.
        if (step?.op === "delete" && step.error === undefined) log.drop(step);
        return false;
      };
      if (gone.includes(false)) return skip();
      return limiter.run(async () => {
        if (stop.reason) return skip();
        return deleteEntry(context, entry, { drop: entry.key }, steps.get(entry) as Step);
      });
    })();
    done.set(entry, work);
    return stop.track(work);
  };
  await Promise.all(condemned.map(remove));
}
