import { ProtectedError } from "../../errors.ts";
import type { Entry } from "../../state/snapshot.ts";
import type { Props } from "../../value.ts";
import type { Goal } from "../program/goal.ts";
import { type DependentsInput, dependentReplacements } from "./dependentReplacements.ts";
import { planImport, wantsImport } from "./planImport.ts";
import { checkInputs, diffResource, ignoreChanges, replaceKeys } from "./providerAnswers.ts";

/** What is to be done for one registered resource. */
export type ResourcePlan =
  | { op: "create"; inputs: Props; old: Entry | undefined }
  | { op: "same"; inputs: Props; old: Entry }
  | { op: "update"; inputs: Props; old: Entry }
  | { op: "import"; inputs: Props; old: Entry | undefined; found: { id: string; outputs: Props } }
  | { op: "replace"; inputs: Props; old: Entry; keys: string[]; deleteFirst: Entry[] | undefined };

/** What a plan is made from besides the goal. */
export type PlanInput = DependentsInput & {
  goal: Goal;
  old: Entry | undefined;
  /** The old object was deleted already in this run, because it depends on a replaced one. */
  recreating: boolean;
  /** True where the resource this one is deleted with is being replaced. */
  ownerReplaced: boolean;
  /** True where the run was asked to replace it. */
  replaceAsked: boolean;
};

/** Asks the provider what a change of the program means for a resource. Throws CheckError for invalid inputs. */
export async function planResource(input: PlanInput): Promise<ResourcePlan> {
  const { provider, goal, old } = input;
  if (wantsImport(goal, old)) {
    refuseProtected(goal, old);
    return planImport(provider, goal, old);
  }
  if (!old || input.recreating) {
    return { op: "create", inputs: await checkInputs(provider, goal, {}, goal.props), old };
  }
  const oldInputs = old.state.inputs ?? {};
  const wanted = ignoreChanges(goal.props, oldInputs, goal.ignoreChanges);
  const inputs = await checkInputs(provider, goal, oldInputs, wanted);
  if (input.replaceAsked || old.state.taint === true) {
    // Whatever it says: it is how a provider learns which object it is about to replace.
    await diffResource(provider, goal, old.state, inputs);
    return replacement(input, old, ["id"], false);
  }
  if (input.ownerReplaced) return replacement(input, old, ["deletedWith"], false);
  const diff = await diffResource(provider, goal, old.state, inputs);
  const keys = replaceKeys(diff, goal.replaceOnChanges, old.state, inputs);
  if (keys.length > 0 || old.state.pendingReplacement === true) {
    return replacement(input, old, keys, diff.deleteBeforeReplace);
  }
  const unfinished = (old.state.initErrors?.length ?? 0) > 0;
  if (diff.changes === "some" || unfinished) return { op: "update", inputs, old };
  return { op: "same", inputs, old };
}

async function replacement(
  input: PlanInput,
  old: Entry,
  keys: string[],
  deleteBefore: boolean,
): Promise<ResourcePlan> {
  const { provider, goal } = input;
  refuseProtected(goal, old);
  if (goal.importId !== "") {
    const why = keys.length > 0 ? ` (because of ${keys.join(", ")})` : "";
    throw new Error(
      `it was imported and would be replaced${why}: take the option import away, or the change back`,
    );
  }
  const inputs = await checkInputs(provider, goal, {}, goal.props);
  const first = goal.deleteBeforeReplace ?? deleteBefore;
  const deleteFirst = first ? await dependentReplacements(input, old) : undefined;
  return { op: "replace", inputs, old, keys, deleteFirst };
}

/** Unprotecting and replacing in one go is allowed: only what is protected before and after is kept. */
function refuseProtected(goal: Goal, old: Entry | undefined): void {
  if (!goal.protect || !old?.state.protect) return;
  throw new ProtectedError("it is protected and would be replaced", old.state.urn);
}
