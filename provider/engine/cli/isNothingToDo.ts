import { isDeepStrictEqual } from "node:util";
import { holds, type Shown } from "../model.ts";

/** A resource as a preview of the CLI tells it; the new state of one that stays has no outputs. */
type ToldState = Readonly<Record<string, Shown>>;

interface Told {
  readonly steps?: readonly {
    readonly op: string;
    readonly oldState?: ToldState;
    readonly newState?: ToldState;
  }[];
}

interface SavedPlan {
  readonly resourcePlans?: Readonly<
    Record<string, { readonly goal?: Readonly<Record<"inputDiff" | "outputDiff", object>> }>
  >;
}

/** Settings by which a preview of the CLI prints JSON, unchanged resources included. CLIs without them print a text. */
export const TELL_ALL = { PULUMI_OPTION_JSON: "true", PULUMI_OPTION_SHOW_SAMES: "true" };

/**
 * True where a preview found nothing to do, and nothing to write to the state, such as another option of a resource.
 * @param printed its output
 * @param plan the plan that it saved, which compares secrets too
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

/** False where a secret was read: all are told as the same word, so nobody knows whether it changed. */
const isReadAsKnown = (before: ToldState, now: ToldState): boolean =>
  !holds(now, "[secret]") &&
  isDeepStrictEqual(options(before), options(now)) &&
  isDeepStrictEqual([before.inputs, before.outputs], [now.inputs, now.outputs]);

/** A resource's options: all but its values, its place in the program, and dependencies on nothing. */
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
