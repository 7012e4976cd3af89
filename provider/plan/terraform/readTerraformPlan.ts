import { type Result, type StateResource, type Step, summarize } from "../../engine/index.ts";
import type { Workspace } from "../../terraform/workspace.ts";
import { evaluatedChanges, notEvaluated } from "./evaluatedResources.ts";
import { type ComparedPlan, compareWithLive, type ReadLive } from "./livePlan.ts";
import { requireConsistent } from "./planConsistency.ts";
import { isPartial, omittedResources, parsePlan } from "./planJson.ts";
import { type PlannedWork, workOf } from "./plannedWork.ts";
import { kinds, type PlanOrigin, PlanReader } from "./planReader.ts";

/** A Terraform plan with only the resources of this provider. */
export interface TerraformPlan {
  readonly plan: Result;
  readonly resources: readonly StateResource[];
  /** The known settings of the provider: `gatehouse:url`, `gatehouse:tenant`. */
  readonly settings: ReadonlyMap<string, string>;
  /**
   * The `provider` argument that gives resources these {@link settings}; omitted if the default block has these
   * settings.
   */
  readonly provider?: string;
  /**
   * True if the provider block or the environment sets the project. Otherwise the project is the base name of the root
   * module's folder, and other root modules can have a folder with the same name.
   */
  readonly isProjectNamed: boolean;
  /** Sentences about resources and settings of the plan that cannot be evaluated. */
  readonly notEvaluated: readonly string[];
  /** Sentences about the limits of the plan, such as a plan that covers only a part of the configuration. */
  readonly notes: readonly string[];
  /**
   * Compares the state with the live objects. The result does not depend on the refresh of the plan.
   * @param service address of the service on which `read` reads objects
   */
  readonly compareWithLive: (service: string, read: ReadLive) => Promise<LivePlan>;
  /** Returns a summary of the changes of all providers, for a comparison with another plan. */
  readonly work: () => PlannedWork;
}

/** A Terraform plan whose steps start from the live objects instead of the state. */
interface LivePlan extends Omit<ComparedPlan, "steps" | "drift"> {
  /** The plan. Its steps start from the live objects. */
  readonly plan: Result;
  /** The differences between the state and the live objects. */
  readonly drift: Result;
}

/**
 * Reads the output of `terraform show -json`.
 * @throws EngineError (`plan_file`) if the text is not a plan, or if parts of the plan contradict each other
 */
export function readTerraformPlan(text: string, origin: PlanOrigin): TerraformPlan {
  const { name, isProjectNamed = false } = origin;
  const json = parsePlan(text, name);
  const omitted = omittedResources(json);
  const changes = evaluatedChanges(json, omitted);
  requireConsistent(json, changes, name);
  const reader = new PlanReader(json, changes, origin);
  const { place } = reader;
  const steps = changes.map((change) => reader.step(change));
  const settings = reader.blocks.shared();
  return {
    plan: resultOf("preview", place, steps),
    resources: changes.flatMap((change) => reader.resource(change)),
    settings,
    ...reader.blocks.named(),
    isProjectNamed: isProjectNamed || settings.has("gatehouse:project"),
    notEvaluated: [...notEvaluated(json, omitted), ...reader.blocks.notEvaluated()],
    notes: isPartial(json) ? [PARTIAL] : [],
    async compareWithLive(service, read) {
      const { steps: fromLive, drift, ...compared } = await compareWithLive(reader, changes, service, read);
      const plan = resultOf("preview", place, fromLive);
      return { ...compared, plan, drift: resultOf("drift", place, drift) };
    },
    work: () => workOf(json, settings, (type) => kinds.get(type)?.attributes ?? []),
  };
}

const PARTIAL =
  "the plan covers only a part of the configuration, as with -target or -exclude; it may omit changes that are not applied yet";

function resultOf(command: "preview" | "drift", place: Workspace, steps: readonly Step[]): Result {
  const planned = command === "preview";
  return {
    engine: "terraform",
    command,
    ...place,
    ok: true,
    planned,
    createdStack: false,
    steps,
    summary: summarize(steps),
    outputs: {},
    diagnostics: [],
    durationMs: 0,
  };
}
