import { isDynamicType, urnName } from "../../../urn.ts";
import { ProtectedError } from "../../errors.ts";
import type { Step, Writable } from "../../model.ts";
import type { RunLog } from "../../runLog.ts";
import { isStored } from "../../state/crypter.ts";
import { isProviderState, type ResourceState, references } from "../../state/resourceState.ts";
import type { Entry, Mutation } from "../../state/snapshot.ts";
import { equal, fieldDiff, markNamed, markSecrets, type Props } from "../../value.ts";
import type { Goal, Registered } from "../program/monitorServer.ts";
import { InitFailedError, ProviderExitedError, type ProviderProcess } from "../program/providerProcess.ts";
import type { ImportPlan, ResourcePlan } from "./planResource.ts";
import type { DeletionContext, DeploymentContext } from "./runControl.ts";

/** Returns the step of a resource that does not change. */
export const objectStep = ({
  urn,
  type,
  id,
}: Pick<ResourceState, "urn" | "type" | "id">): Writable<Step> => ({
  op: "same",
  urn,
  type,
  name: urnName(urn),
  ...(id && { id }),
  fields: [],
});

/** Reports a step without changes for each resource that is excluded from this run. */
export function reportUntouched(log: RunLog, entries: readonly Entry[]): void {
  for (const { state } of entries) {
    if (!isProviderState(state) && !state.delete && !state.pendingReplacement) log.step(objectStep(state));
  }
}

/**
 * Deletes resources concurrently, each of them after its dependents. The limiter restricts the number of concurrent
 * deletions.
 * @param replaced the steps of replacements, by URN. The deletion of an old object is part of the replacement's step.
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
      // Removes the step of a skipped deletion. Keeps the step of a replacement, since the new object exists, and the
      // next run deletes the old object.
      if (step.op === "delete" && step.error === undefined) log.drop(step);
      return false;
    };
    const work = (async (): Promise<boolean> => {
      const before = blockers.get(entry.state) ?? [];
      const results = await Promise.all(before.map((state) => remove(entryOf.get(state) as Entry)));
      if (results.includes(false)) return skip();
      return limiter.run(async () =>
        stop.reason ? skip() : deleteEntry(context, entry, { drop: entry.key }, step),
      );
    })();
    done.set(entry, work);
    return stop.track(work);
  };
  await Promise.all(condemned.map(remove));
}

/**
 * Returns the steps of the deletions. If a resource must not be deleted, marks its step as failed and stops the run.
 */
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
      ...objectStep(state),
      op: "delete",
      fields: fieldDiff(state.inputs, undefined),
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

// The old object of a replacement is not checked again: the run checked this object before it created the new object.
function refusal(context: DeletionContext, state: ResourceState): Error | undefined {
  if (state.protect && !state.delete && !state.pendingReplacement)
    return new ProtectedError("it is protected and would be deleted", state.urn);
  const reason = context.refuse(state.urn);
  return reason === undefined ? undefined : new Error(reason);
}

/**
 * Deletes one object, and then applies the mutation `after` to the snapshot. If the deletion fails, sets the error of
 * `step`, stops the run and returns false.
 */
async function deleteEntry(
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
    if (!(error instanceof ProviderExitedError)) await snapshot.end(operation, []);
    log.fail(step, error as Error);
    finish((error as Error).message);
    context.stop.stop("failed");
    return false;
  }
  await snapshot.end(operation, [after]);
  finish();
  return true;
}

/** Returns true if the provider must delete an object. */
function hasObject(state: ResourceState, deleted: ReadonlySet<string>): boolean {
  if (!state.custom || state.external || state.retainOnDelete || state.pendingReplacement) return false;
  if (!isDynamicType(state.type)) return false;
  return !(state.deletedWith && deleted.has(state.deletedWith));
}

/**
 * Returns the deletion blockers of each resource. The blockers are other resources to delete that refer to the
 * resource, so they must be deleted first.
 */
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

export function registerComponent(
  context: DeploymentContext,
  goal: Goal,
  old: Entry | undefined,
  step: Writable<Step>,
): Registered {
  const { inputs = {}, outputs = {} } = old?.state ?? {};
  const changed = !equal(inputs, goal.props);
  step.op = !old ? "create" : changed ? "update" : "same";
  if (changed) step.fields = fieldDiff(old?.state.inputs, goal.props);
  keepState(context, goal.urn, old, newState(goal, "", { inputs: goal.props, outputs }, old?.state, changed));
  return { urn: goal.urn, id: "", outputs: goal.props };
}

/**
 * Executes the plan of a resource. Returns undefined if the deletion of dependents fails, or if the run stops before
 * the plan starts.
 */
export async function executePlan(
  context: DeploymentContext,
  goal: Goal,
  plan: ResourcePlan,
  step: Writable<Step>,
): Promise<Registered | undefined> {
  if (plan.op === "same" || context.dryRun) return settle(context, goal, plan);
  const deletesFirst = plan.op === "replace" && plan.deleteFirst !== undefined;
  if (deletesFirst && !(await deleteFirst(context, [...plan.deleteFirst].reverse(), plan.old, step)))
    return undefined;
  return context.limiter.run(async () => {
    if (context.stop.reason) {
      if (deletesFirst)
        step.error = "the run stopped after the old object was deleted and before the new object was created";
      return undefined;
    }
    const finish = context.log.start(step.op, step);
    try {
      const registered =
        plan.op === "import"
          ? await importObject(context, goal, plan, step)
          : await createOrUpdate(context, goal, plan, step);
      finish();
      return registered;
    } catch (error) {
      finish((error as Error).message);
      throw error;
    }
  });
}

/**
 * Deletes an object and its dependents before the run creates the new object of a replacement. Returns false if a
 * deletion fails, or if the run stops.
 */
async function deleteFirst(
  context: DeploymentContext,
  dependents: readonly Entry[],
  old: Entry,
  step: Writable<Step>,
): Promise<boolean> {
  const entries = [...dependents, old];
  // Adds all URNs before the first deletion. If the option `deletedWith` of an object refers to a resource that this
  // run deletes, the provider does not delete the object. The referenced resource may come later in the list.
  for (const { state } of entries) context.deleted.add(state.urn);
  for (const entry of entries) {
    if (context.stop.reason) return false;
    const current = context.snapshot.get(entry.key);
    if (!current || current.pendingReplacement) continue;
    const after: Mutation = { put: entry.key, state: { ...current, pendingReplacement: true } };
    if (!(await context.limiter.run(() => deleteEntry(context, entry, after, step)))) return false;
  }
  return true;
}

/** Records a resource in the state without a call to the provider, for an unchanged object or in a dry run. */
function settle(context: DeploymentContext, goal: Goal, plan: ResourcePlan): Registered {
  const { id, outputs } = expected(goal, plan);
  const found = { inputs: plan.inputs, outputs, id };
  const state = newState(goal, context.providerRef, found, plan.old?.state, false);
  keepState(context, goal.urn, plan.old, state);
  return { urn: goal.urn, id, outputs };
}

/** Returns the expected id and outputs of a resource, as far as they are known before the provider is called. */
function expected(goal: Goal, plan: ResourcePlan): { id: string; outputs: Props } {
  const { id = "", outputs = {} } = plan.op === "import" ? plan.found : (plan.old?.state ?? {});
  if (plan.op === "same" || plan.op === "import")
    return { id, outputs: markNamed(outputs, goal.additionalSecretOutputs) };
  return { id: plan.op === "update" ? id : "", outputs: plan.inputs };
}

async function importObject(
  context: DeploymentContext,
  goal: Goal,
  plan: ImportPlan,
  step: Writable<Step>,
): Promise<Registered> {
  const { snapshot, taken, log, providerRef } = context;
  const { id, outputs } = expected(goal, plan);
  log.hide(outputs);
  const state = newState(goal, providerRef, { inputs: plan.inputs, outputs, id }, undefined, true);
  const put = { put: taken.keep(goal.urn, undefined, state), state };
  await snapshot.end(undefined, [put, ...retired(context, plan.old)]);
  step.id = id;
  return { urn: goal.urn, id, outputs };
}

/**
 * @throws the provider's error. If the provider created or changed an object before the error, the state already
 *   contains the object.
 */
async function createOrUpdate(
  context: DeploymentContext,
  goal: Goal,
  plan: ResourcePlan,
  step: Writable<Step>,
): Promise<Registered> {
  const { snapshot, taken, log, provider, providerRef } = context;
  const { inputs } = plan;
  const updated = plan.op === "update" ? plan.old : undefined;
  const old = updated?.state;
  const before = { inputs, outputs: old?.outputs ?? {}, id: old?.id };
  const pending = newState(goal, providerRef, before, old, true);
  const operation = await snapshot.begin(old ? "updating" : "creating", pending);
  const result = await callProvider(provider, goal, inputs, updated).catch(async (error: unknown) => {
    // If the provider exited without a response, the result of the operation is unknown. In this case, the operation
    // remains pending.
    if (!(error instanceof ProviderExitedError)) await snapshot.end(operation, []);
    throw error;
  });
  const outputs = markNamed(markSecrets(result.outputs, inputs), goal.additionalSecretOutputs);
  log.hide(outputs);
  const { id, failure } = result;
  const initErrors = failure && (failure.reasons.length > 0 ? failure.reasons : [failure.message]);
  const state = newState(goal, providerRef, { inputs, outputs, id, initErrors }, old, true);
  const put = { put: taken.keep(goal.urn, updated, state), state };
  await snapshot.end(operation, updated ? [put] : [put, ...retired(context, plan.old)]);
  step.id = id;
  if (failure) throw new Error([failure.message, ...failure.reasons].join("; "));
  return { urn: goal.urn, id, outputs };
}

interface ProviderResult {
  readonly id: string;
  readonly outputs: Props;
  readonly failure?: InitFailedError;
}

async function callProvider(
  provider: ProviderProcess,
  goal: Goal,
  inputs: Props,
  updated: Entry | undefined,
): Promise<ProviderResult> {
  try {
    if (!updated) return await provider.create(goal, inputs);
    return { id: updated.state.id ?? "", ...(await provider.update(goal, updated.state, inputs)) };
  } catch (error) {
    if (!(error instanceof InitFailedError)) throw error;
    return { id: error.id, outputs: error.props, failure: error };
  }
}

function retired({ snapshot }: DeploymentContext, old: Entry | undefined): Mutation[] {
  if (!old) return [];
  const now = snapshot.get(old.key) ?? old.state;
  return [now.pendingReplacement ? { drop: old.key } : { put: old.key, state: { ...now, delete: true } }];
}

/** An object's id, inputs and outputs, from the provider's response or from the program. */
interface ObjectState {
  readonly id?: string;
  readonly inputs: Props;
  readonly outputs: Props;
  readonly initErrors?: readonly string[];
}

/** Returns the new state of a resource. @param changed true if the object was created or changed */
function newState(
  goal: Goal,
  provider: string,
  { id, inputs, outputs, initErrors }: ObjectState,
  old: ResourceState | undefined,
  changed: boolean,
): ResourceState {
  const now = new Date().toISOString();
  const state = {
    urn: goal.urn,
    custom: goal.custom,
    type: goal.type,
    id,
    inputs,
    outputs,
    parent: goal.parent,
    protect: goal.protect,
    dependencies: goal.dependencies,
    initErrors,
    provider,
    propertyDependencies: goal.custom ? goal.propertyDependencies : {},
    additionalSecretOutputs: goal.additionalSecretOutputs,
    customTimeouts: goal.customTimeouts,
    importID: goal.importId,
    retainOnDelete: goal.retainOnDelete,
    deletedWith: goal.deletedWith,
    created: old?.created ?? now,
    modified: changed || !old?.modified ? now : old.modified,
    ignoreChanges: goal.ignoreChanges,
    replaceOnChanges: goal.replaceOnChanges,
  };
  return stored(state) as ResourceState;
}

export function keepState(
  context: DeploymentContext,
  urn: string,
  old: Entry | undefined,
  state: ResourceState,
): void {
  const put = context.taken.keep(urn, old, state);
  if (!old || !equal(asValue(old.state), asValue(state))) writeState(context, [{ put, state }]);
}

/**
 * Applies changes to the state without a call to a provider. In a dry run, only records that the real run would change
 * the state.
 */
export function writeState({ snapshot, dryRun }: DeploymentContext, mutations: readonly Mutation[]): void {
  if (dryRun) snapshot.wouldChange();
  else snapshot.change(mutations);
}

const stored = (state: object) =>
  Object.fromEntries(Object.entries(state).filter(([key, value]) => isStored(key, value)));

const asValue = (state: ResourceState) => JSON.parse(JSON.stringify(stored(state))) as Props;
