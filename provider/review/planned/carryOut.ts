import { Claims, TwinError } from "../../resources/claims.ts";
import { renameTags } from "./devicesAndTags.ts";
import { CannotTell, type Draft } from "./draft.ts";
import { kindOf, kinds } from "./kinds.ts";
import { isHidden, losesObject, type PlannedStep } from "./steps.ts";
import type { Declared } from "./twins.ts";

/** What came of the steps. */
export interface CarriedOut {
  /** The resources of the program, but for those that nobody can tell anything of. */
  readonly declared: readonly Declared[];
  /** What nobody can tell, as sentences. */
  readonly unknown: readonly string[];
}

/**
 * Carries out steps on paper. What goes, goes unless another resource of the program has it by then, as the provider
 * does it; what comes is put in its place afterwards, although engines delete last: what both concern stays.
 */
export function carryOut(draft: Draft, steps: readonly PlannedStep[]): CarriedOut {
  const work: Work = { draft, claims: new Claims(), declared: [], unknown: [] };
  const isEarly = ({ definition }: PlannedStep) => definition.name === "Tag" || definition.name === "Device";
  // Other resources refer to tags and devices by the names that they have by then.
  carryOutTogether(work, steps.filter(isEarly));
  carryOutTogether(
    work,
    steps.filter((planned) => !isEarly(planned)),
  );
  return { declared: work.declared, unknown: [...work.unknown, ...unclearOrder(draft)] };
}

interface Work {
  readonly draft: Draft;
  readonly claims: Claims;
  readonly declared: Declared[];
  readonly unknown: string[];
}

function carryOutTogether(work: Work, steps: readonly PlannedStep[]): void {
  const { draft, claims } = work;
  const done = inOrder(steps).filter((planned) => declare(work, planned));
  renameTags(
    draft,
    done.filter(({ step, definition }) => definition.name === "Tag" && step.op === "update"),
  );
  for (const planned of done) {
    const { step, definition, before } = planned;
    if (!before || !leaves(planned) || (step.id && claims.isHeld(definition, step.id))) continue;
    kindOf(definition).remove(draft, planned, before, (key) => claims.isHeldAlone(key));
  }
  for (const planned of done) {
    const { step, definition, before, after } = planned;
    const kind = kindOf(definition);
    attempt(work, planned, () => {
      if (after && comes(planned)) kind.bring(draft, planned, after);
      else if (before && after && step.op === "update") kind.change(draft, planned, before, after);
    });
  }
}

/** By kind, and of one kind as the plan has them. */
const inOrder = (steps: readonly PlannedStep[]) =>
  [...kinds.keys()].flatMap((name) => steps.filter(({ definition }) => definition.name === name));

/** Notes which object the resource has; false where nobody can tell, so that it keeps the one that it has. */
function declare(work: Work, planned: PlannedStep): boolean {
  const { draft, claims, declared } = work;
  const isClear = attempt(work, planned, () => {
    const id = idOf(draft, planned);
    if (!planned.after) return;
    declared.push({ planned, id });
    hold(claims, planned, id);
  });
  if (!isClear) hold(claims, planned, planned.step.id);
  return isClear;
}

function attempt({ unknown }: Work, { title, before }: PlannedStep, work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (!(error instanceof CannotTell)) throw error;
    unknown.push(
      `${title}: ${error.message}; ${before ? "what it has stays as it is" : "it is left out"} here`,
    );
    return false;
  }
}

/** From one namespace to another an object goes by a replacement: in each of them one half of it is seen. */
const leaves = ({ step, before }: PlannedStep) => losesObject(step) && before?.retained !== true;
const comes = ({ step: { op } }: PlannedStep) => op === "create" || op === "replace";

/**
 * The id, tenant and all, of the object that a resource will have.
 * @throws CannotTell
 */
function idOf(draft: Draft, planned: PlannedStep): string | undefined {
  const { step, definition, after } = planned;
  if (!after || step.op === "same" || step.op === "import") return step.id;
  const kind = kindOf(definition);
  const hidden = kind.decisive.filter((name) => isHidden(after.inputs[name]));
  if (hidden.length > 0) {
    throw new CannotTell(
      `its ${hidden.join(" and ")} ${hidden.length === 1 ? "is" : "are"} secret or not known before the change is made`,
    );
  }
  if (!comes(planned)) return step.id;
  const id = kind.idOf(draft, planned, after);
  return id === undefined ? undefined : `${draft.estate.tenant}/${id}`;
}

function hold(claims: Claims, { step, definition }: PlannedStep, id: string | undefined): void {
  if (id === undefined) return;
  try {
    claims.hold(definition, step.urn, id);
  } catch (error) {
    // Twins have a list of their own; here it is enough that one of them has the object.
    if (!(error instanceof TwinError)) throw error;
  }
}

/** Of rules alike in priority the one made last decides, and engines make several at once. */
function unclearOrder({ rules, estate }: Draft): string[] {
  const known = new Set(estate.policy.rules.map(({ id }) => id));
  const fresh = [...rules.values()].filter(({ id, active }) => active && !known.has(id));
  return fresh.flatMap((rule, place) =>
    fresh
      .slice(place + 1)
      .filter((other) => other.priority === rule.priority && other.action !== rule.action)
      .map(
        (other) =>
          `FirewallRule "${rule.id}" and "${other.id}" have one priority, and the one that is made last decides: the order here is the plan's, which the run need not keep; give them priorities that differ`,
      ),
  );
}
