import { UNKNOWN } from "../../../valueMarks.ts";
import { type ResourceState, references } from "../../state/resourceState.ts";
import type { Entry } from "../../state/snapshot.ts";
import { topologicalOrder } from "../../state/topologicalOrder.ts";
import type { Props } from "../../value.ts";
import type { ProviderProcess } from "../program/providerProcess.ts";
import { diffResource, replaceKeys } from "./providerAnswers.ts";

/** What the search for dependents needs. */
export interface DependentsInput {
  readonly provider: ProviderProcess;
  readonly entries: () => Entry[];
  /** True for a URN that this run has dealt with: its resource cannot depend on the replaced one any more. */
  readonly done: (urn: string) => boolean;
}

/**
 * The dependents that must be deleted before `root` is, dependencies first: each would itself be replaced if the
 * properties that it has from a deleted resource changed.
 */
export async function dependentReplacements(input: DependentsInput, root: Entry): Promise<Entry[]> {
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

/** All resources that depend on a URN, directly or not, in the order of `states`: dependencies first. */
function dependentsOf(urn: string, states: readonly ResourceState[]): ResourceState[] {
  const reached = new Set([urn]);
  return states.filter((state) => {
    if (state.urn === urn || !references(state).some((other) => reached.has(other))) return false;
    reached.add(state.urn);
    return true;
  });
}

async function mustBeReplaced(
  provider: ProviderProcess,
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
  const diff = await diffResource(provider, state, state, inputs);
  return replaceKeys(diff, state.replaceOnChanges ?? [], { inputs: state.inputs }, inputs).length > 0;
}
