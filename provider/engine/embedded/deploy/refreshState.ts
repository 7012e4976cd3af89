import { fieldDiff } from "../../fieldDiff.ts";
import type { FieldChange, Step } from "../../model.ts";
import type { RunLog } from "../../runLog.ts";
import { type ResourceState, references } from "../../state/resourceState.ts";
import type { Entry, Snapshot } from "../../state/snapshot.ts";
import { urnName } from "../../urn.ts";
import { equal, markNamed, markSecrets, type Props } from "../../value.ts";
import { isDynamicType } from "../program/goal.ts";
import type { DynamicProvider } from "../program/providerProcess.ts";
import { Limiter } from "./limiter.ts";
import type { Selection } from "./participants.ts";
import type { StopSwitch } from "./stopSwitch.ts";

/** What a refresh needs. */
export type RefreshOptions = {
  snapshot: Snapshot;
  provider: DynamicProvider;
  log: RunLog;
  stop: StopSwitch;
  parallel: number;
  selection: Selection;
  /** Told of a read that failed: that resource stays as it was. */
  failed: (step: Step, error: Error) => void;
};

/**
 * Reads every selected object, puts what is found into the snapshot and drops what is gone. That settles what an earlier
 * run left in flight, but for creations.
 */
export async function refreshState(options: RefreshOptions): Promise<Step[]> {
  const { snapshot, log, stop, selection, failed } = options;
  const limiter = new Limiter(options.parallel);
  const steps: Step[] = [];
  const gone = new Map<string, ResourceState>();
  const unread = new Set<string>();
  const selected = snapshot.entries().filter(({ state }) => isSelected(selection, state));
  await Promise.all(
    selected.map((entry) => {
      const { state } = entry;
      const step: Step = {
        op: "same",
        urn: state.urn,
        type: state.type,
        name: urnName(state.urn),
        fields: [],
      };
      if (state.id) step.id = state.id;
      if (!state.type.startsWith("pulumi:providers:")) steps.push(step);
      if (!state.custom || state.external || state.pendingReplacement || !isDynamicType(state.type))
        return undefined;
      return limiter.run(async () => {
        if (stop.reason) {
          unread.add(state.urn);
          return;
        }
        const finish = log.start("refresh", step);
        try {
          if ((await refreshOne(options, entry, step)) === "gone" && !state.delete)
            gone.set(state.urn, state);
          finish();
        } catch (error) {
          unread.add(state.urn);
          finish((error as Error).message);
          failed(step, error as Error);
        }
      });
    }),
  );
  forget(snapshot, gone);
  snapshot.settle(
    ({ type, resource }) =>
      type !== "creating" && !unread.has(resource.urn) && isSelected(selection, resource),
  );
  return steps;
}

/** Whether a resource takes part in a run. */
export const isSelected = (selection: Selection, state: ResourceState): boolean =>
  selection.includes(state.urn, references(state));

async function refreshOne(options: RefreshOptions, entry: Entry, step: Step): Promise<"gone" | "there"> {
  const { provider, snapshot, log } = options;
  const { key, state } = entry;
  const old = { inputs: state.inputs ?? {}, outputs: state.outputs ?? {} };
  const found = await provider.read(step, state.id ?? "", old);
  if (!found) {
    step.op = "delete";
    step.fields = fieldDiff(state.inputs, undefined);
    await snapshot.end(undefined, [{ drop: key }]);
    return "gone";
  }
  const inputs = found.inputs ? markSecrets(found.inputs, old.inputs) : old.inputs;
  const marked = markSecrets(markSecrets(found.outputs, inputs), old.outputs);
  const outputs = markNamed(marked, state.additionalSecretOutputs ?? []);
  log.hide(outputs);
  const changed = !equal(inputs, old.inputs) || !equal(outputs, old.outputs) || found.id !== state.id;
  if (!changed && !state.initErrors?.length) return "there";
  if (changed) {
    step.op = "update";
    step.fields = mergedDiff(old, { inputs, outputs });
  }
  const next: ResourceState = { ...state, id: found.id, inputs, outputs };
  delete next.initErrors;
  if (changed) next.modified = new Date().toISOString();
  snapshot.change([{ put: key, state: next }]);
  return "there";
}

/** What differs in the inputs, then what differs in the outputs only. */
export function mergedDiff(
  old: { inputs: Props; outputs: Props },
  now: { inputs: Props; outputs: Props },
): FieldChange[] {
  const fields = fieldDiff(old.inputs, now.inputs);
  const paths = new Set(fields.map((field) => field.path));
  for (const field of fieldDiff(old.outputs, now.outputs)) {
    if (paths.has(field.path)) continue;
    // Many providers read back outputs alone; what the program declared is still what changed.
    const declared = (field.path.split(".")[0] ?? "") in old.inputs;
    fields.push(declared ? field : { ...field, outputOnly: true });
  }
  return fields;
}

/** Takes references to vanished resources away; children go up to the nearest parent that is still there. */
function forget(snapshot: Snapshot, gone: ReadonlyMap<string, ResourceState>): void {
  if (gone.size === 0) return;
  const left = (urns: string[]): string[] => urns.filter((urn) => !gone.has(urn));
  for (const { key, state } of snapshot.entries()) {
    if (!references(state).some((urn) => gone.has(urn))) continue;
    const next: ResourceState = { ...state };
    while (next.parent && gone.has(next.parent)) {
      const parent = gone.get(next.parent)?.parent;
      if (parent) next.parent = parent;
      else delete next.parent;
    }
    if (next.deletedWith && gone.has(next.deletedWith)) delete next.deletedWith;
    if (next.dependencies) next.dependencies = left(next.dependencies);
    if (next.propertyDependencies) {
      next.propertyDependencies = Object.fromEntries(
        Object.entries(next.propertyDependencies).map(([name, urns]) => [name, left(urns)]),
      );
    }
    snapshot.change([{ put: key, state: next }]);
  }
}
