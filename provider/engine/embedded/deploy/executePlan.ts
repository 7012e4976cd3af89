import type { Step, Writable } from "../../model.ts";
import { isStored } from "../../state/crypter.ts";
import type { ResourceState } from "../../state/resourceState.ts";
import type { Entry, Mutation } from "../../state/snapshot.ts";
import { equal, fieldDiff, markNamed, markSecrets, type Props } from "../../value.ts";
import type { Goal, Registered } from "../program/monitorServer.ts";
import { InitFailedError, ProviderGoneError, type ProviderProcess } from "../program/providerProcess.ts";
import type { DeploymentContext } from "./context.ts";
import { deleteEntry } from "./deletions.ts";
import type { ImportPlan, ResourcePlan } from "./planResource.ts";

/** Puts a component, which no provider knows of, into the state. */
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

/** Carries out the plan for a resource. Undefined where that failed, or the run stops before it. */
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
      if (deletesFirst) step.error = "stopped between its deletion and its creation";
      return undefined;
    }
    const finish = context.log.start(step.op, step);
    try {
      const registered =
        plan.op === "import"
          ? await takeOver(context, goal, plan, step)
          : await createOrUpdate(context, goal, plan, step);
      finish();
      return registered;
    } catch (error) {
      finish((error as Error).message);
      throw error;
    }
  });
}

/** Deletes an object and its dependents before its replacement is made. False where that failed, or the run stops. */
async function deleteFirst(
  context: DeploymentContext,
  dependents: readonly Entry[],
  old: Entry,
  step: Writable<Step>,
): Promise<boolean> {
  const entries = [...dependents, old];
  // An object that goes with another one (`deletedWith`) is asked about before that one's own turn.
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

/** Notes a resource in the state without asking its provider: its object stays, or this is a dry run. */
function settle(context: DeploymentContext, goal: Goal, plan: ResourcePlan): Registered {
  const { id, outputs } = expected(goal, plan);
  const found = { inputs: plan.inputs, outputs, id };
  const state = newState(goal, context.providerRef, found, plan.old?.state, false);
  keepState(context, goal.urn, plan.old, state);
  return { urn: goal.urn, id, outputs };
}

/** The id and the outputs, as far as they are known before the provider does anything. */
function expected(goal: Goal, plan: ResourcePlan): { id: string; outputs: Props } {
  const { id = "", outputs = {} } = plan.op === "import" ? plan.found : (plan.old?.state ?? {});
  if (plan.op === "same" || plan.op === "import")
    return { id, outputs: markNamed(outputs, goal.additionalSecretOutputs) };
  return { id: plan.op === "update" ? id : "", outputs: plan.inputs };
}

/** Writes to the state an object that was there already. */
async function takeOver(
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
 * Creates or updates the real object.
 * @throws the provider's error, once the state has what the provider made
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
  const found = await askProvider(provider, goal, inputs, updated).catch(async (error: unknown) => {
    // Without an answer nobody knows what the operation did: it stays pending.
    if (!(error instanceof ProviderGoneError)) await snapshot.end(operation, []);
    throw error;
  });
  const outputs = markNamed(markSecrets(found.outputs, inputs), goal.additionalSecretOutputs);
  log.hide(outputs);
  const { id, failure } = found;
  const initErrors = failure && (failure.reasons.length > 0 ? failure.reasons : [failure.message]);
  const state = newState(goal, providerRef, { inputs, outputs, id, initErrors }, old, true);
  const put = { put: taken.keep(goal.urn, updated, state), state };
  await snapshot.end(operation, updated ? [put] : [put, ...retired(context, plan.old)]);
  step.id = id;
  if (failure) throw new Error([failure.message, ...failure.reasons].join("; "));
  return { urn: goal.urn, id, outputs };
}

interface Answer {
  readonly id: string;
  readonly outputs: Props;
  readonly failure?: InitFailedError;
}

async function askProvider(
  provider: ProviderProcess,
  goal: Goal,
  inputs: Props,
  updated: Entry | undefined,
): Promise<Answer> {
  try {
    if (!updated) return await provider.create(goal, inputs);
    return { id: updated.state.id ?? "", ...(await provider.update(goal, updated.state, inputs)) };
  } catch (error) {
    if (!(error instanceof InitFailedError)) throw error;
    return { id: error.id, outputs: error.props, failure: error };
  }
}

/** What becomes of the old object's entry once the new one is there. */
function retired({ snapshot }: DeploymentContext, old: Entry | undefined): Mutation[] {
  if (!old) return [];
  const now = snapshot.get(old.key) ?? old.state;
  return [now.pendingReplacement ? { drop: old.key } : { put: old.key, state: { ...now, delete: true } }];
}

/** What the provider, or the program, says of an object. */
interface Found {
  readonly id?: string;
  readonly inputs: Props;
  readonly outputs: Props;
  readonly initErrors?: readonly string[];
}

/**
 * The state of a resource as the program wants it now.
 * @param old its state so far, whose times stay
 * @param changed whether the object is another one than before
 */
export function newState(
  goal: Goal,
  provider: string,
  { id, inputs, outputs, initErrors }: Found,
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

/** Notes what a resource is now, and writes it where the state holds something else. */
export function keepState(
  context: DeploymentContext,
  urn: string,
  old: Entry | undefined,
  state: ResourceState,
): void {
  const put = context.taken.keep(urn, old, state);
  if (!old || !equal(asValue(old.state), asValue(state))) writeState(context, [{ put, state }]);
}

/** Makes changes that no provider took part in; a dry run only notes that there are some. */
export function writeState({ snapshot, dryRun }: DeploymentContext, mutations: readonly Mutation[]): void {
  if (dryRun) snapshot.wouldChange();
  else snapshot.change(mutations);
}

const stored = (state: object) =>
  Object.fromEntries(Object.entries(state).filter(([key, value]) => isStored(key, value)));

const asValue = (state: ResourceState) => JSON.parse(JSON.stringify(stored(state))) as Props;
