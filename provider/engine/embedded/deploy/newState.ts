import type { ResourceState } from "../../state/resourceState.ts";
import { isStored } from "../../state/stateCodec.ts";
import { equal, type Props } from "../../value.ts";
import type { Goal } from "../program/goal.ts";

/** The state of a resource as the program wants it now; `old` gives what stays the same over runs. */
export function newState(
  goal: Goal,
  provider: string,
  found: { inputs: Props; outputs: Props; id?: string; initErrors?: string[] },
  old: ResourceState | undefined,
  changed: boolean,
): ResourceState {
  const now = new Date().toISOString();
  const state: ResourceState = { urn: goal.urn, custom: goal.custom, type: goal.type };
  if (found.id) state.id = found.id;
  state.inputs = found.inputs;
  state.outputs = found.outputs;
  if (goal.parent) state.parent = goal.parent;
  if (goal.protect) state.protect = true;
  state.dependencies = goal.dependencies;
  if (found.initErrors?.length) state.initErrors = found.initErrors;
  if (provider) state.provider = provider;
  if (goal.custom) state.propertyDependencies = goal.propertyDependencies;
  state.additionalSecretOutputs = goal.additionalSecretOutputs;
  state.customTimeouts = goal.customTimeouts;
  if (goal.importId) state.importID = goal.importId;
  if (goal.retainOnDelete) state.retainOnDelete = true;
  if (goal.deletedWith) state.deletedWith = goal.deletedWith;
  state.created = old?.created ?? now;
  state.modified = changed || !old?.modified ? now : old.modified;
  state.ignoreChanges = goal.ignoreChanges;
  state.replaceOnChanges = goal.replaceOnChanges;
  return state;
}

/** True where the state holds just what would be written. */
export function isUnchanged(old: ResourceState, state: ResourceState): boolean {
  return equal(asValue(old), asValue(state));
}

function asValue(state: ResourceState): Props {
  const stored = Object.entries(state).filter(([key, value]) => isStored(key, value));
  return JSON.parse(JSON.stringify(Object.fromEntries(stored))) as Props;
}
