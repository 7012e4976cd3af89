import type { Step } from "../../model.ts";
import type { ResourceState } from "../../state/resourceState.ts";
import type { Entry, Mutation } from "../../state/snapshot.ts";
import { markNamed, markSecrets, type Props } from "../../value.ts";
import type { ResourcePlan } from "../plan/planResource.ts";
import type { Goal } from "../program/goal.ts";
import type { Registered } from "../program/monitorServer.ts";
import { type DynamicProvider, PartialFailure, ProviderGoneError } from "../program/providerProcess.ts";
import { deleteEntry } from "./deletions.ts";
import { type DeploymentContext, deletionContext, writeState } from "./deploymentContext.ts";
import { isUnchanged, newState } from "./newState.ts";

/** Does what was planned for a resource. Undefined where it failed, or the run stops before it. */
export async function executePlan(
  context: DeploymentContext,
  goal: Goal,
  plan: ResourcePlan,
  step: Step,
): Promise<Registered | undefined> {
  if (plan.op === "same" || context.dryRun) return settle(context, goal, plan);
  if (plan.op === "replace" && plan.deleteFirst) {
    if (!(await deleteFirst(context, [...plan.deleteFirst].reverse(), plan.old, step))) return undefined;
  }
  return context.limiter.run(async () => {
    if (context.stop.reason) {
      if (plan.op === "replace" && plan.deleteFirst)
        step.error = "stopped between its deletion and its creation";
      return undefined;
    }
    const finish = context.log.start(step.op, step);
    try {
      const registered =
        plan.op === "import"
          ? await takeOver(context, goal, plan, step)
          : await apply(context, goal, plan, step);
      finish();
      return registered;
    } catch (error) {
      finish((error as Error).message);
      throw error;
    }
  });
}

/** What needs no provider: nothing changes, or nothing may. */
function settle(context: DeploymentContext, goal: Goal, plan: ResourcePlan): Registered {
  const { claims, providerRef } = context;
  const { inputs } = plan;
  const old = plan.old?.state;
  const { id, outputs } = expected(goal, plan);
  const state = newState(goal, providerRef, { inputs, outputs, id }, old, false);
  const key = claims.keep(goal.urn, plan.old, state);
  if (old && !isUnchanged(old, state)) writeState(context, [{ put: key, state }]);
  return { urn: goal.urn, id, outputs };
}

/** The id and the outputs as far as they are known without the provider's doing anything. */
function expected(goal: Goal, plan: ResourcePlan): { id: string; outputs: Props } {
  if (plan.op === "import")
    return { ...plan.found, outputs: markNamed(plan.found.outputs, goal.additionalSecretOutputs) };
  const old = plan.old?.state;
  if (plan.op === "same") {
    return { id: old?.id ?? "", outputs: markNamed(old?.outputs ?? {}, goal.additionalSecretOutputs) };
  }
  return { id: plan.op === "update" ? (old?.id ?? "") : "", outputs: plan.inputs };
}

/** Writes an object that was there already to the state. */
async function takeOver(
  context: DeploymentContext,
  goal: Goal,
  plan: ResourcePlan & { op: "import" },
  step: Step,
): Promise<Registered> {
  const { snapshot, claims, log, providerRef } = context;
  const { id, outputs } = expected(goal, plan);
  log.hide(outputs);
  const state = newState(goal, providerRef, { inputs: plan.inputs, outputs, id }, undefined, true);
  const key = claims.keep(goal.urn, undefined, state);
  const mutations: Mutation[] = [{ put: key, state }];
  if (plan.old) mutations.push(retire(context, plan.old));
  await snapshot.end(undefined, mutations);
  step.id = id;
  return { urn: goal.urn, id, outputs };
}

type Work = {
  goal: Goal;
  inputs: Props;
  /** The entry that is updated; undefined for a creation. */
  updated: Entry | undefined;
};

/** Creates or updates the real object. Throws what the provider throws, after noting what it left. */
async function apply(
  context: DeploymentContext,
  goal: Goal,
  plan: ResourcePlan,
  step: Step,
): Promise<Registered> {
  const { snapshot, claims, log, providerRef } = context;
  const work: Work = { goal, inputs: plan.inputs, updated: plan.op === "update" ? plan.old : undefined };
  const old = work.updated?.state;
  const before = { inputs: plan.inputs, outputs: old?.outputs ?? {}, id: old?.id ?? "" };
  const pending = newState(goal, providerRef, before, old, true);
  const operation = await snapshot.begin(old ? "updating" : "creating", pending);
  const provider = await context.provider;
  const found = await askProvider(provider, work).catch(async (error: unknown) => {
    // Of an operation that got no answer nobody knows what it did: it stays pending.
    if (!(error instanceof ProviderGoneError)) await snapshot.end(operation, []);
    throw error;
  });
  const outputs = markNamed(markSecrets(found.outputs, plan.inputs), goal.additionalSecretOutputs);
  log.hide(outputs);
  const { id, failure } = found;
  const initErrors = failure ? (failure.reasons.length > 0 ? failure.reasons : [failure.message]) : [];
  const state = newState(goal, providerRef, { inputs: plan.inputs, outputs, id, initErrors }, old, true);
  const key = claims.keep(goal.urn, work.updated, state);
  const mutations: Mutation[] = [{ put: key, state }];
  if (!work.updated && plan.old) mutations.push(retire(context, plan.old));
  await snapshot.end(operation, mutations);
  step.id = id;
  if (failure) throw new Error([failure.message, ...failure.reasons].join("; "));
  return { urn: goal.urn, id, outputs };
}

type Answer = { id: string; outputs: Props; failure?: PartialFailure };

async function askProvider(provider: DynamicProvider, { goal, inputs, updated }: Work): Promise<Answer> {
  try {
    if (!updated) return await provider.create(goal, inputs);
    const id = updated.state.id ?? "";
    return { id, ...(await provider.update(goal, id, oldProps(updated.state), inputs)) };
  } catch (error) {
    if (!(error instanceof PartialFailure)) throw error;
    return { id: error.id, outputs: error.props, failure: error };
  }
}

function oldProps(state: ResourceState): { inputs: Props; outputs: Props } {
  return { inputs: state.inputs ?? {}, outputs: state.outputs ?? {} };
}

/** What becomes of the old object's entry once the new one is there. */
function retire({ snapshot }: DeploymentContext, old: Entry): Mutation {
  const now = snapshot.get(old.key) ?? old.state;
  if (now.pendingReplacement) return { drop: old.key };
  return { put: old.key, state: { ...now, delete: true } };
}

async function deleteFirst(
  context: DeploymentContext,
  dependents: Entry[],
  old: Entry,
  step: Step,
): Promise<boolean> {
  const deletion = deletionContext(context);
  // What goes with another object must know of that one's end before its own turn comes.
  for (const { state } of [...dependents, old]) context.deleted.add(state.urn);
  for (const entry of [...dependents, old]) {
    if (context.stop.reason) return false;
    const current = context.snapshot.get(entry.key);
    if (!current || current.pendingReplacement) continue;
    const after: Mutation = { put: entry.key, state: { ...current, pendingReplacement: true } };
    if (!(await context.limiter.run(() => deleteEntry(deletion, entry, after, step)))) return false;
  }
  return true;
}
