import { EngineError, type Plan, type Result, type Stack } from "../engine/index.ts";
import type { OutdatedPlanError } from "../plan/saved/OutdatedPlanError.ts";
import type { ReviewedContent } from "../plan/saved/planFile.ts";
import type { PlannedWork } from "../plan/terraform/plannedWork.ts";
import type { ReviewedPlan } from "../review/reviewPlan.ts";
import type { Connection } from "../service/connection.ts";
import type { Io } from "./io.ts";
import { contentOf } from "./terraformPlan.ts";
import { withConnection } from "./withConnection.ts";

/** The exit code of `gatehouse up --plan` where what was reviewed is not what would be done. */
export const OUTDATED = 2;

/** A reviewed plan, and how it was made. */
export interface ToSave {
  readonly plan: Plan;
  readonly reviewed: ReviewedPlan;
  /** Whether the real objects were read first. */
  readonly refresh: boolean;
}

/** Writes a reviewed plan to a file, for `up --plan`. */
export async function saveReviewed(
  file: string,
  stack: Stack,
  { plan, reviewed, refresh }: ToSave,
): Promise<void> {
  const { capturePlan } = await import("../plan/saved/capturePlan.ts");
  const { savePlan } = await import("../plan/saved/planFile.ts");
  const { home, estates, review } = reviewed;
  await savePlan(file, stack, capturePlan(plan, { service: review.service, home, refresh, estates }));
}

/**
 * Carries out a reviewed plan, or does nothing.
 * @throws OutdatedPlanError naming what is no longer as it was reviewed; EngineError where the file cannot be used
 */
export async function upAsReviewed(io: Io, file: string, stack: Stack): Promise<Result> {
  const { readPlan } = await import("../plan/saved/planFile.ts");
  const reviewed = await readPlan(file, stack);
  const { refresh, service } = reviewed;
  const work = async (connection: Connection): Promise<Result> => {
    const { url } = connection.client;
    if (url !== service) {
      throw new EngineError("plan_file", `--plan ${file} was reviewed on ${service}, and this is ${url}.`);
    }
    const confirm = async (plan: Plan) => {
      await requireAsReviewed(io, connection, plan, reviewed);
      return true;
    };
    return stack.up({ refresh, values: true, held: true, confirm });
  };
  return withConnection(io, work, await stack.config());
}

/**
 * Compares the work of a plan of Terraform with what a review has kept; undefined where it is the same.
 * @throws EngineError (`plan_file`) where the file is of no use
 */
export async function outdatedWork(file: string, work: PlannedWork): Promise<OutdatedPlanError | undefined> {
  const { parseWork, workDifferences } = await import("../plan/terraform/plannedWork.ts");
  const { OutdatedPlanError } = await import("../plan/saved/OutdatedPlanError.ts");
  const differences = workDifferences(parseWork(await contentOf(file), file), work);
  return differences.length > 0 ? new OutdatedPlanError(differences) : undefined;
}

async function requireAsReviewed(
  { stderr }: Io,
  connection: Connection,
  plan: Plan,
  reviewed: ReviewedContent,
): Promise<void> {
  const { estatesOf } = await import("../review/reviewPlan.ts");
  const { capturePlan } = await import("../plan/saved/capturePlan.ts");
  const { planDifferences } = await import("../plan/saved/planDifferences.ts");
  const { printable } = await import("../words.ts");
  const { OutdatedPlanError } = await import("../plan/saved/OutdatedPlanError.ts");
  const { home, estates } = await estatesOf(connection, [plan]);
  if (home !== reviewed.home) {
    throw new EngineError(
      "plan_file",
      `the plan was reviewed with the namespace ${reviewed.home ?? "that each resource names"}, and the credential's is ${home ?? "not settled"}.`,
    );
  }
  const { service, refresh } = reviewed;
  const now = capturePlan(plan, { service, home, refresh, estates });
  const { differences, notes } = planDifferences(reviewed, now);
  // Devices choose their names.
  for (const note of notes) stderr.write(`${printable(note)}\n`);
  if (differences.length > 0) throw new OutdatedPlanError(differences);
}
