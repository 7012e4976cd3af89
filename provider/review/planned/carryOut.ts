import { Claims, TwinError } from "../../resources/claims.ts";
import { renameTags } from "./devicesAndTags.ts";
import { CannotTell, type Draft } from "./draft.ts";
import { kindOf, kinds } from "./kinds.ts";
import { isHidden, type PlannedStep } from "./steps.ts";
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
  const unknown: string[] = [];
  const can = (planned: PlannedStep, work: () => void): boolean => {
    try {
      work();
      return true;
    } catch (error) {
      if (!(error instanceof CannotTell)) throw error;
      const rest = planned.before ? "what it has stays as it is here" : "it is left out here";
      unknown.push(`${planned.title}: ${error.message}; ${rest}`);
      return false;
    }
  };
  const claims = new Claims();
  const declared: Declared[] = [];
  const done = [...kinds.keys()]
    .flatMap((name) => steps.filter(({ definition }) => definition.name === name))
    .filter((planned) => {
      const isClear = can(planned, () => {
        const id = idOf(draft, planned);
        if (planned.after) declared.push({ planned, id });
        hold(claims, planned, planned.after && id);
      });
      if (!isClear) hold(claims, planned, planned.step.id);
      return isClear;
    });
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
    const { definition, before, after } = planned;
    const kind = kindOf(definition);
    can(planned, () => {
      if (after && comes(planned)) kind.bring(draft, planned, after);
      else if (before && after && planned.step.op === "update") kind.change(draft, planned, before, after);
    });
  }
  return { declared, unknown: [...unknown, ...unclearOrder(draft)] };
}

/** From one namespace to another an object goes by a replacement: in each of them one half of it is seen. */
const leaves = ({ step: { op } }: PlannedStep) => op === "delete" || op === "replace";
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
