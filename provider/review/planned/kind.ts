import type { ResourceValues } from "../../engine/index.ts";
import type { Draft } from "./draft.ts";
import type { PlannedStep } from "./steps.ts";

/** What the steps of one resource do to a namespace. All of it may throw CannotTell. */
export interface Kind {
  /** Inputs without which nobody can tell what the object will be. */
  readonly decisive: readonly string[];
  /** Id, after the tenant's, of the object that a resource which comes will have; undefined: one that is made. */
  idOf(draft: Draft, step: PlannedStep, after: ResourceValues): string | undefined;
  /** True where an object of the state is on the service. */
  isLive(draft: Draft, id: string): boolean;
  /** @param isClaimed true where a resource of the program claims this key for itself alone */
  remove(draft: Draft, step: PlannedStep, before: ResourceValues, isClaimed: (key: string) => boolean): void;
  bring(draft: Draft, step: PlannedStep, after: ResourceValues): void;
  change(draft: Draft, step: PlannedStep, before: ResourceValues, after: ResourceValues): void;
}
