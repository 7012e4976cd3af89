import { type ResourceState, references } from "./resourceState.ts";

/**
 * Orders resources so that what they refer to comes before them; otherwise the given order is kept. A resource
 * marked for deletion keeps its place behind what it refers to as well. Cycles cannot be ordered and stay as given.
 */
export function topologicalOrder(states: readonly ResourceState[]): ResourceState[] {
  const byUrn = new Map<string, ResourceState[]>();
  for (const state of states) {
    const list = byUrn.get(state.urn);
    if (list) list.push(state);
    else byUrn.set(state.urn, [state]);
  }
  const ordered: ResourceState[] = [];
  const seen = new Set<ResourceState>();
  const visit = (start: ResourceState): void => {
    const work: { state: ResourceState; next: ResourceState[]; at: number }[] = [];
    const enter = (state: ResourceState): void => {
      if (seen.has(state)) return;
      seen.add(state);
      work.push({ state, next: references(state).flatMap((urn) => byUrn.get(urn) ?? []), at: 0 });
    };
    enter(start);
    while (work.length > 0) {
      const frame = work[work.length - 1] as (typeof work)[number];
      const dependency = frame.next[frame.at++];
      if (dependency) enter(dependency);
      else {
        ordered.push(frame.state);
        work.pop();
      }
    }
  };
  for (const state of states) visit(state);
  return ordered;
}

/** All resources that depend on `urn`, directly or not, in the order of `states` (dependencies first). */
export function dependentsOf(urn: string, states: readonly ResourceState[]): ResourceState[] {
  const reached = new Set([urn]);
  const found: ResourceState[] = [];
  for (const state of states) {
    if (state.urn === urn || !references(state).some((other) => reached.has(other))) continue;
    reached.add(state.urn);
    found.push(state);
  }
  return found;
}

/**
 * For each condemned resource, those condemned resources that must be gone before it: the ones that refer to it.
 */
export function deletionBlockers(condemned: readonly ResourceState[]): Map<ResourceState, ResourceState[]> {
  const byUrn = new Map<string, ResourceState[]>();
  for (const state of condemned) byUrn.set(state.urn, [...(byUrn.get(state.urn) ?? []), state]);
  const blockers = new Map<ResourceState, ResourceState[]>(condemned.map((state) => [state, []]));
  for (const state of condemned) {
    for (const urn of references(state)) {
      for (const target of byUrn.get(urn) ?? []) blockers.get(target)?.push(state);
    }
  }
  return blockers;
}
