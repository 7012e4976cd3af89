import type { ResourceState } from "../../state/resourceState.ts";
import type { Entry } from "../../state/snapshot.ts";
import { dependentsOf, topologicalOrder } from "../../state/topologicalOrder.ts";
import { urnName } from "../../urn.ts";
import { type Props, UNKNOWN } from "../../value.ts";
import type { DynamicProvider } from "../program/providerProcess.ts";
import { diffResource, replaceKeys } from "./providerAnswers.ts";

/** What the search for dependents needs. */
export type DependentsInput = {
  provider: DynamicProvider;
  entries: () => Entry[];
  /** Urns this run has dealt with already: they cannot depend on the resource any more. */
  done: (urn: string) => boolean;
};

/**
 * The dependents that must be deleted before `root` is, dependencies first: those that would themselves be replaced
 * if the properties that come from a deleted resource changed.
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
  const target = { urn: state.urn, type: state.type, name: urnName(state.urn) };
  const diff = await diffResource(provider, target, state, inputs);
  const { initErrors: _, ...healthy } = state;
  return replaceKeys(diff, state.replaceOnChanges ?? [], healthy, inputs).length > 0;
}
