import { isDeepStrictEqual } from "node:util";
import type { Workload } from "../estate/namespaceState.ts";
import { byTexts } from "../words.ts";
import type { AcceptedTokens, WorkloadChange } from "./report/review.ts";

/** Returns the trusted workloads that are added, removed, or get another role or other conditions, by name. */
export function workloadChanges(before: readonly Workload[], after: readonly Workload[]): WorkloadChange[] {
  const was = new Map(before.map((workload) => [workload.id, workload]));
  const is = new Map(after.map((workload) => [workload.id, workload]));
  const changes = [...new Set([...was.keys(), ...is.keys()])].flatMap((id): WorkloadChange[] => {
    const [old, now] = [was.get(id), is.get(id)];
    const [acceptedBefore, accepts] = [tokensOf(old), tokensOf(now)];
    const isSame = isDeepStrictEqual(acceptedBefore, accepts);
    if (old?.role === now?.role && isSame) return [];
    return [
      {
        change: old === undefined ? "added" : now === undefined ? "removed" : "altered",
        name: now?.name ?? old?.name ?? id,
        ...(old && { from: old.role }),
        ...(now && { to: now.role }),
        ...(accepts && { accepts }),
        ...(now && acceptedBefore && !isSame && { acceptedBefore }),
      },
    ];
  });
  return changes.sort(byTexts(({ name }) => name));
}

const tokensOf = (workload: Workload | undefined): AcceptedTokens | undefined =>
  workload && {
    issuer: workload.issuer,
    audience: workload.audience,
    claims: workload.claims,
    maxSessionMinutes: workload.maxSessionMinutes,
    singleUse: workload.singleUse,
  };
