import { type ResourceState, references } from "./resourceState.ts";

/**
 * Orders resources so that each comes after those it refers to; otherwise the given order is kept. That goes for objects
 * that are marked for deletion as well. Circles cannot be ordered and stay as given.
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
