import type { Step } from "../../model.ts";
import type { RunLog } from "../../runLog.ts";
import type { Mutation, Snapshot } from "../../state/snapshot.ts";
import type { TargetOptions } from "../../targets.ts";
import type { Props } from "../../value.ts";
import type { Claims } from "../plan/takenEntries.ts";
import type { DynamicProvider } from "../program/providerProcess.ts";
import type { DeletionContext } from "./deletions.ts";
import type { HeldPlan } from "./heldPlan.ts";
import type { Limiter } from "./limiter.ts";
import type { StopSwitch } from "./stopSwitch.ts";

/** What a deployment needs. */
export type DeploymentOptions = {
  stack: string;
  project: string;
  dryRun: boolean;
  parallel: number;
  snapshot: Snapshot;
  log: RunLog;
  stop: StopSwitch;
  provider: Promise<DynamicProvider>;
  /** The configuration, which the default provider's entry in the state holds. */
  providerInputs: Props;
  targets: TargetOptions;
  /** Urns, with wildcards, of what must be replaced. */
  replace: readonly string[];
  /** What this run must not go beyond. */
  held?: HeldPlan;
};

/** What the parts of a deployment share. */
export type DeploymentContext = DeploymentOptions & {
  claims: Claims;
  limiter: Limiter;
  /** Resources of this run whose old object goes, with the step that tells of it. */
  replaced: Map<string, Step>;
  /** Urns deleted in this run. */
  deleted: Set<string>;
  /** Urns whose object was deleted because it depends on a replaced one, to be made again. */
  recreate: Set<string>;
  /** The reference to the default provider; empty before the first dynamic resource. */
  providerRef: string;
};

/** Writes what needs no provider; a dry run only notes that there is something to write. */
export function writeState(
  { snapshot, dryRun }: Pick<DeploymentContext, "snapshot" | "dryRun">,
  mutations: Mutation[],
): void {
  if (dryRun) snapshot.wouldChange();
  else snapshot.change(mutations);
}

/** What deleting within a deployment needs. */
export function deletionContext(context: DeploymentContext): DeletionContext {
  const { snapshot, log, stop, dryRun, limiter, deleted } = context;
  return { snapshot, log, stop, dryRun, limiter, deleted, provider: () => context.provider };
}
