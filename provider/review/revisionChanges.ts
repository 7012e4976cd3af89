import {
  type FieldChange,
  fieldDiff,
  type Plan,
  type ResourceValues,
  type Shown,
  type Step,
  summarize,
  typeName,
} from "../engine/index.ts";
import { isHidden } from "../model/plannedStep.ts";
import { sameValue } from "../model/values.ts";
import { definitionOf } from "../namespace/liveObjects.ts";
import { topOf } from "../plan/steps.ts";

interface DeclaredStep extends Step {
  readonly after: ResourceValues;
}

/**
 * Compares the declarations of two revisions of a program. The steps of the two plans do not show the differences
 * between the revisions, since both plans start from the same state. Two declarations belong to the same resource if
 * they have the same URN. After a rename, they belong to the same resource if they have the same object. The result
 * includes steps of unchanged resources. `notEvaluated` contains sentences about differences that are not known.
 * @param base a preview with values
 * @param head a preview with values, of the same stack
 */
export function revisionChanges(base: Plan, head: Plan) {
  const left = new Map(declaredBy(base).map((step) => [keyOf(step), step]));
  const steps: Step[] = [];
  const notEvaluated: string[] = [];
  for (const [step, was] of pairs(declaredBy(head), left)) {
    steps.push(was ? changing(was, step) : coming(step));
    if (was) notEvaluated.push(...unknownChange(was, step));
  }
  steps.push(...[...left.values()].map(going));
  return { steps, summary: summarize(steps), notEvaluated };
}

const declaredBy = ({ steps }: Plan): DeclaredStep[] =>
  steps.flatMap((step) => (step.after ? [{ ...step, after: step.after }] : []));

/**
 * Returns a key for a resource, derived from its URN. The resource has the same key in the dynamic provider and in the
 * packaged plugin.
 */
const keyOf = ({ urn, type }: Step): string => urn.replace(type, typeName(type));

/** Pairs each step with the step of the same resource in the base plan. Removes the paired steps from `left`. */
function pairs(
  steps: readonly DeclaredStep[],
  left: Map<string, DeclaredStep>,
): [DeclaredStep, DeclaredStep | undefined][] {
  const take = (was: DeclaredStep | undefined) => {
    if (was) left.delete(keyOf(was));
    return was;
  };
  const byUrn = steps.map((step) => [step, take(left.get(keyOf(step)))] as const);
  return byUrn.map(([step, was]) => [step, was ?? take(renamed(step, left))]);
}

const renamed = ({ type, id }: Step, left: ReadonlyMap<string, DeclaredStep>) =>
  [...left.values()].find(
    (was) => id !== undefined && was.id === id && typeName(was.type) === typeName(type),
  );

function coming({ op, ...step }: DeclaredStep): Step {
  const fields = fieldDiff(undefined, inputsOf(step));
  return { ...nameOf(step), op: op === "import" ? "import" : "create", fields };
}

const going = (was: DeclaredStep): Step => ({
  ...nameOf(was),
  op: "delete",
  fields: fieldDiff(inputsOf(was), undefined),
  ...(was.after.retained && { retained: true }),
});

function changing(was: DeclaredStep, step: DeclaredStep): Step {
  const fields = changed(was, step);
  const names = [...new Set(fields.map(({ path }) => topOf(path)))];
  const replaceKeys = names.filter((name) => replaces(step, name));
  if (replaceKeys.length > 0) return { ...nameOf(step), op: "replace", fields, replaceKeys };
  return { ...nameOf(step), op: fields.length === 0 ? "same" : "update", fields };
}

const nameOf = ({ urn, type, name, id }: Omit<Step, "op">) => ({
  urn,
  type,
  name,
  ...(id !== undefined && { id }),
});

/**
 * Returns true if a change to the input replaces the resource. For resources of other packages, only the plan contains
 * this information.
 */
const replaces = (step: Step, name: string): boolean =>
  definitionOf(step)?.inputs[name]?.replaces ?? step.replaceKeys?.includes(name) ?? false;

function changed(was: DeclaredStep, step: DeclaredStep): FieldChange[] {
  const definition = definitionOf(step);
  const [before, after] = [inputsOf(was), inputsOf(step)];
  return fieldDiff(before, after).filter(({ path }) => {
    const name = topOf(path);
    const field = definition?.inputs[name];
    const [old, now] = [before[name], after[name]];
    // A secret or unknown value has no canonical form.
    return !field || isHidden(old) || isHidden(now) || !sameValue(field, old, now);
  });
}

/**
 * Returns the declared inputs of a resource. Omits inputs that are only instructions for the run, such as `adopt`, and
 * inputs that the resource classes add for the provider.
 */
function inputsOf({ type, after: { inputs } }: Pick<DeclaredStep, "type" | "after">): Record<string, Shown> {
  const definition = definitionOf({ type });
  const isDeclared = (name: string) =>
    definition ? definition.inputs[name]?.transient === false : !name.startsWith("__");
  return Object.fromEntries(Object.entries(inputs).filter(([name]) => isDeclared(name)));
}

/**
 * Reports inputs whose values are secret or unknown in both plans. If neither plan changes the resource, reports
 * nothing.
 */
function unknownChange(was: DeclaredStep, step: DeclaredStep): string[] {
  if (was.op === "same" && step.op === "same") return [];
  const [before, after] = [inputsOf(was), inputsOf(step)];
  const hidden = Object.keys(after).filter((name) => isHidden(before[name]) && isHidden(after[name]));
  if (hidden.length === 0) return [];
  const verb = hidden.length === 1 ? "is" : "are";
  return [
    `${definitionOf(step)?.name ?? step.type} "${step.name}": cannot compare the two revisions of ${hidden.join(" and ")}, ` +
      `which ${verb} secret or unknown before the apply`,
  ];
}
