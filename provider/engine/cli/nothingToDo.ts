import { isDeepStrictEqual } from "node:util";
import { holds, type Shown } from "../model.ts";

/** A resource as a preview of the CLI tells it; of one that stays, the new state has no outputs. */
type ToldState = Record<string, Shown>;
type Told = { steps?: { op: string; oldState?: ToldState; newState?: ToldState }[] };
type SavedPlan = { resourcePlans?: Record<string, { goal?: Record<"inputDiff" | "outputDiff", object> }> };

/** Settings by which a preview of the CLI prints as JSON, what stays as it is too. CLIs that know none print a text. */
export const TELL_ALL = { PULUMI_OPTION_JSON: "true", PULUMI_OPTION_SHOW_SAMES: "true" };

/**
 * True where a preview found nothing to do and nothing to write to the state, such as another option of a resource.
 * @param printed what it printed
 * @param plan the plan it saved: there, unlike in what it prints, secrets were compared
 */
export function isNothingToDo(printed: string, plan: string): boolean {
  if (!printed.startsWith("{")) return false;
  const { steps = [] } = JSON.parse(printed) as Told;
  const { resourcePlans = {} } = JSON.parse(plan) as SavedPlan;
  const stays = steps.every(({ op, oldState = {}, newState = {} }) => {
    if (op === "refresh") return isReadAsKnown(oldState, newState);
    return op === "same" && isDeepStrictEqual(options(oldState), options(newState));
  });
  const isEmpty = (changes: object | undefined) => Object.keys(changes ?? {}).length === 0;
  return (
    stays &&
    Object.values(resourcePlans).every(({ goal }) => isEmpty(goal?.inputDiff) && isEmpty(goal?.outputDiff))
  );
}

/** Secrets that were read are told as the same word, whatever they are. */
const isReadAsKnown = (before: ToldState, now: ToldState): boolean =>
  !holds(now, "[secret]") &&
  isDeepStrictEqual(options(before), options(now)) &&
  isDeepStrictEqual([before.inputs, before.outputs], [now.inputs, now.outputs]);

/** Without the values, where in the program it was declared, and what depends on nothing: a refresh leaves that out. */
function options({
  id: _id,
  inputs: _inputs,
  outputs: _outputs,
  created: _created,
  modified: _modified,
  sourcePosition: _position,
  stackTrace: _trace,
  propertyDependencies = {},
  ...rest
}: ToldState): ToldState {
  const depending = Object.entries(propertyDependencies as Record<string, string[]>).filter(
    ([, urns]) => urns.length > 0,
  );
  return { ...rest, propertyDependencies: Object.fromEntries(depending) };
}
