import { fieldDiff } from "../../fieldDiff.ts";
import type { Step } from "../../model.ts";
import type { Entry } from "../../state/snapshot.ts";
import { equal } from "../../value.ts";
import type { Goal } from "../program/goal.ts";
import type { Registered } from "../program/monitorServer.ts";
import { type DeploymentContext, writeState } from "./deploymentContext.ts";
import { isUnchanged, newState } from "./newState.ts";

/** Puts a component, which no provider knows of, into the state. */
export function registerComponent(
  context: DeploymentContext,
  goal: Goal,
  old: Entry | undefined,
  step: Step,
): Registered {
  const { claims } = context;
  const outputs = old?.state.outputs ?? {};
  const changed = !equal(old?.state.inputs ?? {}, goal.props);
  step.op = !old ? "create" : changed ? "update" : "same";
  if (changed) step.fields = fieldDiff(old?.state.inputs, goal.props);
  const state = newState(goal, "", { inputs: goal.props, outputs }, old?.state, changed);
  const key = claims.keep(goal.urn, old, state);
  if (!(old && isUnchanged(old.state, state))) writeState(context, [{ put: key, state }]);
  return { urn: goal.urn, id: "", outputs: goal.props };
}
