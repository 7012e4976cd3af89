import { shownValues } from "../fieldDiff.ts";
import type { Step } from "../model.ts";
import type { ResourceState } from "../state/resourceState.ts";
import type { Snapshot } from "../state/snapshot.ts";
import type { Claims } from "./plan/takenEntries.ts";

/** Adds to the steps of a dry run, which leaves the snapshot as it was, what their resources are before and after. */
export function addValues(steps: readonly Step[], snapshot: Snapshot, claims: Claims): void {
  const left = new Map<string, ResourceState>();
  for (const { key, state } of snapshot.entries()) {
    if (state.delete === true || !claims.isTouched(key)) left.set(nameOf(state), state);
  }
  for (const step of steps) {
    const kept = step.op === "delete" ? undefined : claims.kept(step.urn);
    const before = kept ? snapshot.get(kept.key) : left.get(nameOf(step));
    // What takes no part in the run stays as it is.
    const after = kept?.state ?? (step.op === "same" ? before : undefined);
    if (before) step.before = shownValues(before);
    if (after) step.after = shownValues(after);
  }
}

/** Old objects of replacements, that are still to be deleted, share the urn of the new one. */
const nameOf = ({ urn, id = "" }: { urn: string; id?: string }) => `${urn} ${id}`;
