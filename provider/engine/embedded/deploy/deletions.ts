import { isDynamicType, urnName } from "../../../urn.ts";
import { ProtectedError } from "../../errors.ts";
import type { Step, Writable } from "../../model.ts";
import type { RunLog } from "../../runLog.ts";
import { isProviderState, type ResourceState, references } from "../../state/resourceState.ts";
import type { Entry, Mutation } from "../../state/snapshot.ts";
import { fieldDiff } from "../../value.ts";
import { ProviderGoneError } from "../program/providerProcess.ts";
import type { DeletionContext } from "./context.ts";

/** The step of a resource that stays as it is in the state. */
export const objectStep = ({ urn, type, id }: ResourceState): Writable<Step> => ({
  op: "same",
  urn,
  type,
  name: urnName(urn),
  ...(id && { id }),
  fields: [],
});

/** Tells of resources that stay as they are, because they take no part in this run. */
export function leaveOut(log: RunLog, entries: readonly Entry[]): void {
  for (const { state } of entries) {
    if (!isProviderState(state) && !state.delete && !state.pendingReplacement) log.step(objectStep(state));
  }
}

/**
 * Deletes resources, each after all that depend on it, as many at once as the limiter allows.
 * @param replaced the steps of replacements, by URN: their old objects go without steps of their own
 */
export async function deleteAll(
  context: DeletionContext,
  condemned: readonly Entry[],
  replaced: ReadonlyMap<string, Writable<Step>> = new Map(),
): Promise<void> {
  const { log, stop, limiter } = context;
  const steps = announce(context, condemned, replaced);
  if (context.dryRun && condemned.length > 0) context.snapshot.wouldChange();
  if (context.dryRun || stop.reason) return;
  const blockers = deletionBlockers(condemned.map((entry) => entry.state));
  const entryOf = new Map(condemned.map((entry) => [entry.state, entry]));
  const done = new Map<Entry, Promise<boolean>>();
  const remove = (entry: Entry): Promise<boolean> => {
    const known = done.get(entry);
    if (known) return known;
    const step = steps.get(entry) as Writable<Step>;
    const skip = (): false => {
      // The step of a replacement stays, since its new object was made: the old one goes with the next run.
      if (step.op === "delete" && step.error === undefined) log.drop(step);
      return false;
    };
    const work = (async (): Promise<boolean> => {
      const before = blockers.get(entry.state) ?? [];
      const gone = await Promise.all(before.map((state) => remove(entryOf.get(state) as Entry)));
      if (gone.includes(false)) return skip();
      return limiter.run(async () =>
        stop.reason ? skip() : deleteEntry(context, entry, { drop: entry.key }, step),
      );
    })();
    done.set(entry, work);
    return stop.track(work);
  };
  await Promise.all(condemned.map(remove));
}

/** The steps of deletions. A resource that may not be deleted fails and stops the run. */
function announce(
  context: DeletionContext,
  condemned: readonly Entry[],
  replaced: ReadonlyMap<string, Writable<Step>>,
): Map<Entry, Writable<Step>> {
  const { log, stop, deleted } = context;
  const steps = new Map<Entry, Writable<Step>>();
  for (const entry of condemned) {
    const { state } = entry;
    deleted.add(state.urn);
    const known = state.delete ? replaced.get(state.urn) : undefined;
    const step = known ?? {
      ...{ ...objectStep(state), op: "delete", fields: fieldDiff(state.inputs, undefined) },
      ...(state.retainOnDelete && { retained: true }),
    };
    steps.set(entry, step);
    if (!known && !isProviderState(state) && !state.pendingReplacement) log.step(step);
    const refused = refusal(context, state);
    if (!refused) continue;
    log.fail(step, refused);
    stop.stop("failed");
  }
  return steps;
}

/** Why a resource may not be deleted. The old object of a replacement was judged before the new one was made. */
function refusal(context: DeletionContext, state: ResourceState): Error | undefined {
  if (state.protect && !state.delete && !state.pendingReplacement)
    return new ProtectedError("it is protected and would be deleted", state.urn);
  const reason = context.refuse(state.urn);
  return reason === undefined ? undefined : new Error(reason);
}

/**
 * Deletes one object and applies the mutation. False where it failed, which is reported and stops the run.
 * @param step told where it fails
 */
export async function deleteEntry(
  context: DeletionContext,
  { state }: Entry,
  after: Mutation,
  step: Writable<Step>,
): Promise<boolean> {
  const { snapshot, log, provider, deleted, dryRun } = context;
  deleted.add(state.urn);
  if (dryRun) return true;
  if (!hasObject(state, deleted)) {
    snapshot.change([after]);
    return true;
  }
  const finish = log.start("delete", objectStep(state));
  const operation = await snapshot.begin("deleting", state);
  try {
    await provider.delete(state);
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

/** True where a provider must be asked to remove an object. */
function hasObject(state: ResourceState, deleted: ReadonlySet<string>): boolean {
  if (!state.custom || state.external || state.retainOnDelete || state.pendingReplacement) return false;
  if (!isDynamicType(state.type)) return false;
  return !(state.deletedWith && deleted.has(state.deletedWith));
}

/** For each resource, those of the others that refer to it and so must be gone before it. */
export function deletionBlockers(condemned: readonly ResourceState[]): Map<ResourceState, ResourceState[]> {
  const byUrn = Map.groupBy(condemned, ({ urn }) => urn);
  const blockers = new Map<ResourceState, ResourceState[]>(condemned.map((state) => [state, []]));
  for (const state of condemned) {
    for (const urn of references(state)) {
      for (const target of byUrn.get(urn) ?? []) blockers.get(target)?.push(state);
    }
  }
  return blockers;
}
