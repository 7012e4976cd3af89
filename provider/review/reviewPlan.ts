import type { EvaluationOptions } from "@gatehouse-access/sdk/policy";
import { type Plan, type ShownStep, type Step, shownStep } from "../engine/index.ts";
import { newNamespaceNotes, newNamespacesOf } from "../plan/planned/notes.ts";
import { unplacedNotes } from "../plan/steps.ts";
import { membersOf } from "../resources/member/index.ts";
import type { Connection, Home } from "../service/connection.ts";
import { byText, byTexts } from "../words.ts";
import { protectedGroup } from "./guards/lockouts.ts";
import { actorOf, type PlanProblem, planProblems } from "./guards/planProblems.ts";
import { type LiveNamespaces, liveNamespacesOf } from "./liveNamespaces.ts";
import type { Review, Revisions } from "./report/review.ts";
import { type NamespaceReviewOptions, type ReviewedNamespace, reviewNamespace } from "./reviewNamespace.ts";
import { reviewTests } from "./reviewTests.ts";
import { revisionChanges } from "./revisionChanges.ts";

/** The base revision of a review. The review compares the plan with this revision instead of the live namespace. */
export interface Baseline {
  /** The plan of the base revision: a preview with values, of the same stack. */
  readonly plan: Plan;
  /** The compared revisions. */
  readonly revisions: Revisions;
  /** Sentences about facts of the two revisions that are not known. They do not block the change. */
  readonly unknown: readonly string[];
}

/**
 * Options of {@link reviewPlan}. The review evaluates the logins and addresses in these options in addition to those in
 * the policy and in sessions.
 */
export interface ReviewOptions
  extends Required<EvaluationOptions>,
    Pick<NamespaceReviewOptions, "elsewhere" | "expiresWithin"> {
  /** The project directory, with the policy tests. */
  readonly folder: string;
  /** Groups of devices that must stay reachable; see `protectedGroup`. */
  readonly protect: readonly string[];
  /** Parts of the plan that could not be evaluated, as sentences. */
  readonly notEvaluated?: readonly string[];
  /** Sentences about facts that limit the plan but do not block the change. */
  readonly unknown?: readonly string[];
  /** The base of the comparison. @default the live namespace */
  readonly baseline?: Baseline;
}

/** A review, and the data from which the review was created. */
export interface ReviewedPlan extends Pick<LiveNamespaces, "home"> {
  readonly review: Review;
  /** The live namespaces of the plan. */
  readonly live: LiveNamespaces["namespaces"];
  /** The reviews by namespace. If the stack has its own namespace, the review of this namespace comes first. */
  readonly namespaces: readonly ReviewedNamespace[];
}

/**
 * Reviews the effect of a plan on access in the stack's own namespace and in all other namespaces of the plan. With a
 * baseline, compares the namespaces after the base plan with the namespaces after this plan.
 * @param plan a preview with values
 * @throws RequestError if the stack's own namespace cannot be read; ConfigurationError in the same cases as {@link
 *   liveNamespacesOf}
 */
export async function reviewPlan(
  connection: Connection,
  plan: Plan,
  options: ReviewOptions,
): Promise<ReviewedPlan> {
  const identity = await connection.client.identity();
  const protect = options.protect.map(protectedGroup);
  const { baseline } = options;
  const {
    home,
    main,
    namespaces: live,
    notEvaluated,
    unknown,
    plans,
  } = await liveNamespacesOf(connection, [plan, ...(baseline ? [baseline.plan] : [])]);
  notEvaluated.unshift(...(options.notEvaluated ?? []));
  unknown.push(...(options.unknown ?? []), ...(baseline?.unknown ?? []));
  const [head = plan, base] = plans;
  unknown.push(...newNamespaceNotes(head));
  // If there are live namespaces, the review of each namespace already lists these resources.
  if (live.length === 0) notEvaluated.push(...unplacedNotes(head));
  const tests = await reviewTests(connection, options.folder, { home, main, namespaces: live, plans });
  // If a namespace of the plan could not be read, the tests that select this namespace report the same sentence again.
  notEvaluated.push(...tests.notEvaluated.filter((sentence) => !notEvaluated.includes(sentence)));
  unknown.push(...tests.untested);
  const namespaces: ReviewedNamespace[] = [];
  for (const one of live) {
    const own = await connection.client.forTenant(one.tenant).identity();
    namespaces.push(
      await reviewNamespace(one, head, {
        ...options,
        protect,
        home,
        policyTests: tests.testsOf(one.tenant),
        ...(base && { base }),
        actor: actorOf(own, { members: membersOf(one) }),
        runningId: own.workloadId ?? identity.userId,
      }),
    );
  }
  for (const { label, has } of protect) {
    const isMatched = namespaces.some(({ before, after }) =>
      [...before.policy.devices, ...after.policy.devices].some(has),
    );
    if (!isMatched) notEvaluated.push(`--protect ${label} matches no device; correct the tag or name`);
  }
  // If `home` is undefined, every resource has its own tenant.
  const preflightFailures = await refusals(connection, head, { tenant: home, unsettled: undefined }, base);
  const testedElsewhere = tests.elsewhere;
  const review = reviewOf(
    connection,
    plan,
    namespaces,
    {
      preflightFailures,
      notEvaluated,
      unknown,
      newNamespaces: newNamespacesOf(head),
      ...(testedElsewhere.length > 0 && { testedElsewhere }),
    },
    baseline,
  );
  return { review, namespaces, home, live };
}

/** The kinds of problems that the review already reports in `missingPermissions` and `notEvaluated`. */
const LISTED_ELSEWHERE: ReadonlySet<PlanProblem["about"]> = new Set(["permissions", "device"]);

/** Returns the problems of a plan, except those that the plan of the base revision also has. */
async function refusals(
  connection: Connection,
  plan: Plan,
  home: Home,
  base: Plan | undefined,
): Promise<string[]> {
  const of = async (one: Plan) => {
    const problems = await planProblems(connection, one, home);
    return problems.filter(({ about }) => !LISTED_ELSEWHERE.has(about)).map(({ text }) => text);
  };
  const refused = await of(plan);
  const known = new Set(base && refused.length > 0 ? await of(base) : []);
  return refused.filter((sentence) => !known.has(sentence));
}

function reviewOf(
  { client }: Connection,
  plan: Plan,
  namespaces: readonly ReviewedNamespace[],
  lists: Pick<Review, "preflightFailures" | "notEvaluated" | "unknown" | "newNamespaces" | "testedElsewhere">,
  baseline: Baseline | undefined,
): Review {
  const { project, stack, engine } = plan;
  const changes = baseline ? revisionChanges(baseline.plan, plan) : { ...plan, notEvaluated: [] };
  return {
    version: 1,
    project,
    stack,
    engine,
    service: client.url,
    ...(baseline && { revisions: baseline.revisions }),
    summary: changes.summary,
    changes: changedSteps(changes.steps),
    ...lists,
    notEvaluated: [...lists.notEvaluated, ...changes.notEvaluated],
    namespaces: namespaces.map(({ review }) => review),
    duplicateDeclarations: namespaces.flatMap(({ planned }) =>
      planned.duplicates
        .map(({ object, urns }) => ({ object, urns: urns.toSorted(byText) }))
        .sort(byTexts(({ object }) => object)),
    ),
  };
}

/** Returns the steps that change something, sorted by type and name. */
export const changedSteps = (steps: readonly Step[]): ShownStep[] =>
  steps
    .filter(({ op }) => op !== "same")
    .sort(
      byTexts(
        ({ type }) => type,
        ({ name }) => name,
        ({ urn }) => urn,
      ),
    )
    .map(shownStep);
