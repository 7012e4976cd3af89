import { isDeepStrictEqual } from "node:util";
import type { Workload } from "../estate/namespaceState.ts";
import { byTexts } from "../words.ts";
import type { AcceptedTokens, WorkloadChange } from "./report/review.ts";

/** Returns the trusted workloads that are added, removed, or get another role or other conditions, by name. */
export function workloadChanges(before: readonly Workload[], after: readonly Workload[]): WorkloadChange[] {
  const was = new Map(before.map((workload) => [workload.id, workload]));
  const is = new Map(after.map((workload) => [workload.id, workload]));
  const changes = [...new Map([...was, ...is]).values()].flatMap(({ id, name }): WorkloadChange[] => {
    const [old, now] = [was.get(id), is.get(id)];
    const [acceptedBefore, accepts] = [old && tokensOf(old), now && tokensOf(now)];
    const isSame = isDeepStrictEqual(acceptedBefore, accepts);
    if (old?.role === now?.role && isSame) return [];
    const change = !old ? "added" : !now ? "removed" : "altered";
    return [
      {
        ...{ change, name },
        ...(old && { from: old.role }),
        ...(now && { to: now.role, accepts }),
        ...(now && acceptedBefore && !isSame && { acceptedBefore }),
      },
    ];
  });
  return changes.sort(byTexts(({ name }) => name));
}

const tokensOf = ({ issuer, audience, claims, maxSessionMinutes, singleUse }: Workload): AcceptedTokens => ({
  ...{ issuer, audience, claims, maxSessionMinutes, singleUse },
});
