import { EngineError } from "../../engine/index.ts";
import { printable } from "../../words.ts";
import type { PlanDifference } from "./planDifferences.ts";

/** Most differences that the message names; all of them are in `differences`. */
const NAMED_MAX = 20;

/** What `up --plan` would do is not what was reviewed, so it does nothing. */
export class OutdatedPlanError extends EngineError {
  readonly differences: readonly PlanDifference[];

  constructor(differences: readonly PlanDifference[]) {
    const more = differences.length - NAMED_MAX;
    super(
      "plan_outdated",
      [
        "what was reviewed is not what would be done now. Nothing was changed; review it again.",
        ...differences.slice(0, NAMED_MAX).map(({ message }) => `  ${printable(message)}`),
        ...(more > 0 ? [`  and ${more} more; --json names them all`] : []),
      ].join("\n"),
    );
    this.differences = differences;
  }
}
