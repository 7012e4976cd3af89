import type { DynamicProvider, ProviderDiff, Target } from "./dynamicProvider.ts";
import { dependentsOf, topologicalOrder } from "./graph.ts";
import type { Goal } from "./registration.ts";
import type { ResourceState } from "./resourceState.ts";
import type { Entry } from "./snapshot.ts";
import { changedKeys, equal, markSecrets, PROVIDER_KEY, type Props, plainProps, UNKNOWN } from "./value.ts";

/** What is to be done for one registered resource. */
export type ResourcePlan =
  | { op: "create"; inputs: Props; old: Entry | undefined }
  | { op: "same"; inputs: Props; old: Entry }
  | { op: "update"; inputs: Props; old: Entry }
  | { op: "replace"; inputs: Props; old: Entry; keys: string[]; deleteFirst: Entry[] | undefined };

/** What a plan is made from besides the goal. */
export type PlanInput = {
  provider: DynamicProvider;
  goal: Goal;
  old: Entry | undefined;
  /** The old object was deleted already in this run, because it depends on a replaced one. */
  recreating: boolean;
  /** True where the resource this one is deleted with is being replaced. */
  ownerReplaced: boolean;
  entries: () => Entry[];
  /** Urns this run has dealt with already: they cannot depend on this resource any more. */
  done: (urn: string) => boolean;
};

/** An input the provider refuses. */
export class CheckError extends Error {}

/** Asks the provider what a change of the program means for a resource. Throws CheckError for invalid inputs. */
export async function planResource(input: PlanInput): Promise<ResourcePlan> {
  const { provider, goal, old } = input;
  const target: Target = goal;
  const compare = old !== undefined && !input.recreating;
  const oldInputs = old?.state.inputs ?? {};
  const wanted = compare ? ignoreChanges(goal.props, oldInputs, goal.ignoreChanges) : goal.props;
  const inputs = await check(provider, target, compare ? oldInputs : {}, wanted);
  if (!old) return { op: "create", inputs, old };
  if (input.recreating) return { op: "create", inputs, old };

  const diff = await diffResource(provider, target, old.state, inputs);
  let keys =
    diff.changes === "some" ? withReplaceOnChanges(diff, goal.replaceOnChanges, oldInputs, inputs) : [];
  if (input.ownerReplaced) keys = ["deletedWith"];
  const forced = input.ownerReplaced || old.state.pendingReplacement === true || old.state.taint === true;
  if (keys.length > 0 || forced) {
    if (goal.protect && old.state.protect) {
      throw new Error("it is protected and would be replaced; take the option protect away first");
    }
    const fresh = await check(provider, target, {}, goal.props);
    const deleteBefore = goal.deleteBeforeReplace ?? diff.deleteBeforeReplace;
    const deleteFirst = deleteBefore ? await dependentReplacements(input, old) : undefined;
    return { op: "replace", inputs: fresh, old, keys, deleteFirst };
  }
  const unfinished = (old.state.initErrors?.length ?? 0) > 0;
  if (diff.changes === "some" || unfinished) return { op: "update", inputs, old };
  return { op: "same", inputs, old };
}

async function check(provider: DynamicProvider, target: Target, olds: Props, news: Props): Promise<Props> {
  const { inputs, failures } = await provider.check(target, olds, news);
  if (failures.length > 0) {
    throw new CheckError(
      failures.map((f) => (f.property ? `${f.property}: ${f.reason}` : f.reason)).join("; "),
    );
  }
  return markSecrets(inputs, news);
}

/** The provider's diff; where it does not say, the inputs are compared. */
export async function diffResource(
  provider: DynamicProvider,
  target: Target,
  old: ResourceState,
  inputs: Props,
): Promise<ProviderDiff> {
  const oldProps = { inputs: old.inputs ?? {}, outputs: old.outputs ?? {} };
  const diff = await provider.diff(target, old.id ?? "", oldProps, inputs);
  if (diff.changes !== "unknown") return diff;
  const same = equal(plainProps(oldProps.inputs), plainProps(inputs));
  return { ...diff, changes: same ? "none" : "some" };
}

/** Puts the old value back for every ignored property. `*` ignores all. */
export function ignoreChanges(inputs: Props, oldInputs: Props, ignored: string[]): Props {
  if (ignored.length === 0) return inputs;
  const result: Props = { ...inputs };
  const all = ignored.includes("*");
  const keys = all ? new Set([...Object.keys(inputs), ...Object.keys(oldInputs)]) : new Set(ignored);
  keys.delete(PROVIDER_KEY);
  for (const key of keys) {
    const old = oldInputs[key];
    if (old === undefined) delete result[key];
    else result[key] = old;
  }
  return result;
}

function withReplaceOnChanges(
  diff: ProviderDiff,
  paths: string[],
  oldInputs: Props,
  inputs: Props,
): string[] {
  const keys = new Set(diff.replaces);
  if (paths.length > 0) {
    for (const key of changedKeys(plainProps(oldInputs), plainProps(inputs))) {
      if (key !== PROVIDER_KEY && (paths.includes("*") || paths.includes(key))) keys.add(key);
    }
  }
  return [...keys];
}

/**
 * The dependents that must be deleted before `root` is, dependencies first: those that would themselves be replaced
 * if the properties that come from a deleted resource changed.
 */
async function dependentReplacements(input: PlanInput, root: Entry): Promise<Entry[]> {
  const live = input.entries().filter((entry) => !entry.state.delete);
  const byState = new Map(live.map((entry) => [entry.state, entry]));
  const replaced = new Set([root.state.urn]);
  const found: Entry[] = [];
  for (const state of dependentsOf(root.state.urn, topologicalOrder(live.map((entry) => entry.state)))) {
    if (!state.custom || state.external || input.done(state.urn)) continue;
    if (!(await mustBeReplaced(input.provider, state, replaced))) continue;
    replaced.add(state.urn);
    const entry = byState.get(state);
    if (entry) found.push(entry);
  }
  return found;
}

async function mustBeReplaced(
  provider: DynamicProvider,
  state: ResourceState,
  replaced: ReadonlySet<string>,
): Promise<boolean> {
  if (state.deletedWith && replaced.has(state.deletedWith)) return true;
  const inputs: Props = { ...state.inputs };
  let depends = false;
  for (const [key, urns] of Object.entries(state.propertyDependencies ?? {})) {
    if (inputs[key] === undefined || !urns.some((urn) => replaced.has(urn))) continue;
    inputs[key] = UNKNOWN;
    depends = true;
  }
  if (!depends) return false;
  const target = { urn: state.urn, type: state.type, name: state.urn.split("::").slice(3).join("::") };
  const diff = await diffResource(provider, target, state, inputs);
  if (diff.changes !== "some") return false;
  return withReplaceOnChanges(diff, state.replaceOnChanges ?? [], state.inputs ?? {}, inputs).length > 0;
}
