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
import { definitionOf } from "../estate/liveObjects.ts";
import { isHidden, topOf } from "../plan/steps.ts";
import { sameValue } from "../resources/values.ts";

interface DeclaredStep extends Step {
  readonly after: ResourceValues;
}

/**
 * Compares what two revisions of a program declare. The steps of the plans do not show that, since both plans start from
 * the same state. Two declarations are of one resource if they have the same urn, or, after a rename, the same object. The
 * result has steps of unchanged resources too; `unseen` reports what is unknown, as sentences.
 * @param base and `head` previews with values, of one stack
 */
export function revisionChanges(base: Plan, head: Plan) {
  const left = new Map(declaredBy(base).map((step) => [keyOf(step), step]));
  const steps: Step[] = [];
  const unseen: string[] = [];
  for (const [step, was] of pairs(declaredBy(head), left)) {
    steps.push(was ? changing(was, step) : coming(step));
    if (was) unseen.push(...unknownChange(was, step));
  }
  steps.push(...[...left.values()].map(going));
  return { steps, summary: summarize(steps), unseen };
}

const declaredBy = ({ steps }: Plan): DeclaredStep[] =>
  steps.flatMap((step) => (step.after ? [{ ...step, after: step.after }] : []));

/** The urn, which does not depend on whether the resource is a dynamic one or one of the plugin. */
const keyOf = ({ urn, type }: Step): string => urn.replace(type, typeName(type));

/** Each step with the base's step of the same resource, which is removed from `left`. */
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
  ...{ urn, type, name },
  ...(id !== undefined && { id }),
});

/** For resources of other packages, only a plan that replaces them shows it. */
const replaces = (step: Step, name: string): boolean =>
  definitionOf(step)?.inputs[name]?.replaces ?? step.replaceKeys?.includes(name) ?? false;

function changed(was: DeclaredStep, step: DeclaredStep): FieldChange[] {
  const definition = definitionOf(step);
  const [before, after] = [inputsOf(was), inputsOf(step)];
  return fieldDiff(before, after).filter(({ path }) => {
    const name = topOf(path);
    const field = definition?.inputs[name];
    const [old, now] = [before[name], after[name]];
    // A hidden value has no canonical form.
    return !field || isHidden(old) || isHidden(now) || !sameValue(field, old, now);
  });
}

/** The inputs that a program declares, without transient ones and those that classes add for the provider. */
function inputsOf({ type, after: { inputs } }: Pick<DeclaredStep, "type" | "after">): Record<string, Shown> {
  const definition = definitionOf({ type });
  const isDeclared = (name: string) =>
    definition ? definition.inputs[name]?.transient === false : !name.startsWith("__");
  return Object.fromEntries(Object.entries(inputs).filter(([name]) => isDeclared(name)));
}

/** Inputs that both plans hide, as a sentence. A resource that neither plan changes is the same. */
function unknownChange(was: DeclaredStep, step: DeclaredStep): string[] {
  if (was.op === "same" && step.op === "same") return [];
  const [before, after] = [inputsOf(was), inputsOf(step)];
  const hidden = Object.keys(after).filter((name) => isHidden(before[name]) && isHidden(after[name]));
  if (hidden.length === 0) return [];
  const verb = hidden.length === 1 ? "is" : "are";
  return [
    `${definitionOf(step)?.name ?? step.type} "${step.name}": whether its ${hidden.join(" and ")} ${verb} another one cannot ` +
      `be told, as ${hidden.length === 1 ? "it" : "they"} ${verb} secret or not known before the change is made`,
  ];
}
