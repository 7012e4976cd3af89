import { readdir, readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { EngineError, fileError, type Plan, type Result, type Stack } from "../engine/index.ts";
import { OutdatedPlanError } from "../plan/saved/planDifferences.ts";
import type { ReviewedContent } from "../plan/saved/planFile.ts";
import type { PlannedWork } from "../plan/terraform/plannedWork.ts";
import type { TerraformPlan } from "../plan/terraform/readTerraformPlan.ts";
import type { ReviewedPlan } from "../review/reviewPlan.ts";
import type { Connection } from "../service/connection.ts";
import { printable } from "../words.ts";
import type { Io } from "./commandOutput.ts";
import { type ConfigurationFlags, configurationOf } from "./flags.ts";
import { withConnection } from "./service.ts";

/**
 * Reads the plan of `--terraform`.
 * @param folder folder of the root module
 * @throws EngineError (`plan_file`) if the plan is invalid, or if the plan or the folder cannot be read
 */
export async function readTerraform(io: Io, folder: string, file: string): Promise<TerraformPlan> {
  const { readTerraformPlan } = await import("../plan/terraform/readTerraformPlan.ts");
  const { configurationFacts } = await import("../plan/terraform/configurationFacts.ts");
  const { namedProject, workspaceIn } = await import("../terraform/workspace.ts");
  // If the folder does not exist, later steps would find neither policy tests nor `access.ignore`, and would continue
  // without them. So a missing folder is an error.
  await readdir(folder).catch(fileError("plan_file", "read", folder));
  const isStdin = file === "-";
  const content = isStdin
    ? await text(io.stdin)
    : await readFile(file, "utf8").catch(fileError("plan_file", "read", file));
  return readTerraformPlan(content, {
    name: isStdin ? "the standard input" : file,
    workspace: workspaceIn(folder, io.env),
    isProjectNamed: namedProject(undefined, io.env) !== undefined,
    ...configurationFacts(folder),
  });
}

/**
 * Returns the plan of `--terraform` and the connection settings. The settings come from the plan, or without a plan
 * from the stack of `--stack`.
 */
export async function planOrConfiguration(
  io: Io,
  folder: string,
  flags: ConfigurationFlags & { readonly terraform?: string },
): Promise<{ terraform?: TerraformPlan; configuration: ReadonlyMap<string, string> }> {
  if (flags.terraform === undefined) return { configuration: await configurationOf(io, folder, flags) };
  const terraform = await readTerraform(io, folder, flags.terraform);
  return { terraform, configuration: terraform.settings };
}

/** Writes a reviewed plan to a file for `up --plan`. @param refresh true if the plan was created after a refresh */
export async function saveReviewed(
  file: string,
  stack: Stack,
  plan: Plan,
  { home, live, review }: ReviewedPlan,
  refresh: boolean,
): Promise<void> {
  const { capturePlan } = await import("../plan/saved/capturePlan.ts");
  const { savePlan } = await import("../plan/saved/planFile.ts");
  await savePlan(file, stack, capturePlan(plan, { service: review.service, home, refresh, live }));
}

/**
 * Applies a reviewed plan. Changes nothing if the current plan differs from the reviewed plan.
 * @throws OutdatedPlanError with the differences from the reviewed plan; EngineError if the file cannot be used
 */
export async function upAsReviewed(io: Io, file: string, stack: Stack): Promise<Result> {
  const { readPlan } = await import("../plan/saved/planFile.ts");
  const reviewed = await readPlan(file, stack);
  const { refresh, service } = reviewed;
  return withConnection(io, await stack.config(), async (connection) => {
    const { url } = connection.client;
    if (url !== service) {
      throw new EngineError(
        "plan_file",
        `The plan ${file} was reviewed on ${service}, but the service is ${url}. Review the plan again.`,
      );
    }
    const confirm = async (plan: Plan) => {
      await requireAsReviewed(io, connection, plan, reviewed);
      return true;
    };
    return stack.up({ refresh, values: true, held: true, confirm });
  });
}

async function requireAsReviewed(
  { stderr }: Io,
  connection: Connection,
  plan: Plan,
  reviewed: ReviewedContent,
): Promise<void> {
  const { liveNamespacesOf } = await import("../review/liveNamespaces.ts");
  const { capturePlan } = await import("../plan/saved/capturePlan.ts");
  const { planDifferences } = await import("../plan/saved/planDifferences.ts");
  const { home, namespaces: live } = await liveNamespacesOf(connection, [plan]);
  if (home !== reviewed.home) {
    throw new EngineError(
      "plan_file",
      `The plan was reviewed for the namespace ${reviewed.home ?? "of each resource"}, but the namespace of the credential is ${home ?? "unknown"}. Review the plan again.`,
    );
  }
  const { service, refresh } = reviewed;
  const now = capturePlan(plan, { service, home, refresh, live });
  const { differences, notes } = planDifferences(reviewed, now);
  // Notes contain device names, which are untrusted text.
  for (const note of notes) stderr.write(`${printable(note)}\n`);
  if (differences.length > 0) throw new OutdatedPlanError(differences);
}

/**
 * Compares the changes of a Terraform plan with the file that an earlier `review --save` wrote.
 * @throws OutdatedPlanError with the differences; EngineError (`plan_file`) if the file cannot be used
 */
export async function requireSameWork(file: string, work: PlannedWork): Promise<void> {
  const { parseWork, workDifferences } = await import("../plan/terraform/plannedWork.ts");
  const saved = await readFile(file, "utf8").catch(fileError("plan_file", "read", file));
  const differences = workDifferences(parseWork(saved, file), work);
  if (differences.length > 0) throw new OutdatedPlanError(differences);
}
