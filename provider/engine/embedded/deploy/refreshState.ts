import { isDynamicType } from "../../../urn.ts";
import type { Step, Writable } from "../../model.ts";
import {
  isProviderState,
  type ResourceState,
  references,
  withReferences,
} from "../../state/resourceState.ts";
import type { Entry, Snapshot } from "../../state/snapshot.ts";
import { equal, fieldDiff, markNamed, markSecrets, refreshedFields } from "../../value.ts";
import type { Participants } from "./participants.ts";
import { type DeletionContext, Limiter, objectStep } from "./steps.ts";

interface RefreshOptions extends Pick<DeletionContext, "snapshot" | "provider" | "log" | "stop"> {
  readonly parallel: number;
  readonly participants: Participants;
  /** Called where a read failed: that resource stays as it was. */
  readonly failed: (step: Writable<Step>, error: Error) => void;
}

/**
 * Reads the objects of all resources that take part into the snapshot, and drops those that are gone. That settles
 * operations that an earlier run left in flight, except creations.
 */
export async function refreshState(options: RefreshOptions): Promise<Step[]> {
  const { snapshot, log, stop, participants, failed } = options;
  const limiter = new Limiter(options.parallel);
  const steps: Step[] = [];
  const gone = new Map<string, ResourceState>();
  const unread = new Set<string>();
  const read = async (entry: Entry, step: Writable<Step>): Promise<void> => {
    const { state } = entry;
    if (stop.reason) {
      unread.add(state.urn);
      return;
    }
    const finish = log.start("refresh", step);
    try {
      const isThere = await refreshOne(options, entry, step);
      if (!isThere && !state.delete) gone.set(state.urn, state);
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
  forget(snapshot, gone);
  snapshot.settle(
    ({ type, resource }) =>
      type !== "creating" && !unread.has(resource.urn) && isSelected(participants, resource),
  );
  return steps;
}

export const isSelected = (participants: Participants, state: ResourceState): boolean =>
  participants.includes(state.urn, references(state));

/** False where the object is gone. */
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

/** Takes references to vanished resources away; children go to the nearest parent that is still there. */
function forget(snapshot: Snapshot, gone: ReadonlyMap<string, ResourceState>): void {
  for (const { key, state } of snapshot.entries()) {
    if (!references(state).some((urn) => gone.has(urn))) continue;
    let { parent } = state;
    while (parent && gone.has(parent)) parent = gone.get(parent)?.parent;
    const left = withReferences(state, (urn) => (gone.has(urn) ? undefined : urn));
    snapshot.change([{ put: key, state: { ...left, parent } }]);
  }
}
