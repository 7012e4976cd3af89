import { type Plan, type ShownStep, type Step, shownStep } from "../engine/index.ts";
import { type Estate, readEach, readEstate } from "../estate/namespaceState.ts";
import { begunNotes } from "../plan/planned/plannedEstate.ts";
import { namespacesOf, onService, type PlanNamespaces } from "../plan/steps.ts";
import { policyTestFiles } from "../policyTests/policyFiles.ts";
import type { Connection, Home } from "../service/connection.ts";
import { byText, byTexts } from "../words.ts";
import { protectedGroup } from "./guards/lockouts.ts";
import { actorOf, type PlanProblem, planProblems } from "./guards/planProblems.ts";
import type { Review, Revisions } from "./report/review.ts";
import { type Elsewhere, type ReviewedNamespace, reviewNamespace } from "./reviewNamespace.ts";
import { revisionChanges } from "./revisionChanges.ts";

/** Another revision of the program, which a plan is compared with instead of the live namespace. */
export interface Baseline {
  /** A preview with values, of the same stack. */
  readonly plan: Plan;
  readonly revisions: Revisions;
  /** What nobody can tell of the two revisions, as sentences. */
  readonly unknown: readonly string[];
}

/** How a plan is reviewed. */
export interface ReviewOptions {
  /** The program's folder. */
  readonly folder: string;
  /** Login names to look at, beside those that the policy and the latest sessions name. */
  readonly logins: readonly string[];
  /** Addresses to look at, likewise. */
  readonly addresses: readonly string[];
  /** Groups of devices that must stay reachable; see `protectedGroup`. */
  readonly protect: readonly string[];
  /** What may be there although the program does not declare it; left out between two revisions. */
  readonly elsewhere?: Elsewhere;
  /** What of the plan could not be looked at, as sentences. */
  readonly unseen?: readonly string[];
  /** @default as of the lint */
  readonly soonDays?: number;
  /** @default the plan is compared with the live namespace */
  readonly baseline?: Baseline;
}

/** A review, and what it was made from. */
export interface ReviewedPlan extends Pick<PlanEstates, "home" | "estates"> {
  readonly review: Review;
  /** The stack's own namespace first, where it has one. */
  readonly namespaces: readonly ReviewedNamespace[];
}

/**
 * What a plan means for who can reach what, in the stack's namespace and in every other one that the plan is about. With
 * a baseline it is the difference between what the two plans would make of a namespace.
 * @param plan a preview with values
 * @throws RequestError when the stack's namespace cannot be read; ConfigurationError as of {@link estatesOf}
 */
export async function reviewPlan(
  connection: Connection,
  plan: Plan,
  options: ReviewOptions,
): Promise<ReviewedPlan> {
  const identity = await connection.client.identity();
  const protect = options.protect.map(protectedGroup);
  const { baseline } = options;
  const { home, main, estates, unseen, unknown, plans } = await estatesOf(connection, [
    plan,
    ...(baseline ? [baseline.plan] : []),
  ]);
  unseen.unshift(...(options.unseen ?? []));
  unknown.push(...(baseline?.unknown ?? []));
  const [here = plan, base] = plans;
  unknown.push(...begunNotes(here));
  if (main === undefined && (await policyTestFiles(options.folder)).length > 0) unseen.push(UNTESTED);
  const namespaces: ReviewedNamespace[] = [];
  for (const estate of estates) {
    namespaces.push(
      await reviewNamespace(estate, here, {
        ...options,
        ...{ protect, home },
        // Policy tests are about the stack's own namespace, here as in `gatehouse test`.
        folder: estate.tenant === main ? options.folder : undefined,
        ...(base && { base }),
        actor: actorOf(identity, estate),
        runningUser: identity.userId,
      }),
    );
  }
  for (const { label, has } of protect) {
    const isThere = namespaces.some(({ before, after }) =>
      [...before.policy.devices, ...after.policy.devices].some(has),
    );
    if (!isThere) unseen.push(`--protect ${label} protects nothing: no device has that tag or name`);
  }
  // Where there is no home, no resource needs one.
  const refused = await refusals(connection, here, { tenant: home, unsettled: undefined }, base);
  const review = reviewOf(connection, plan, namespaces, { refused, unseen, unknown }, baseline);
  return { review, namespaces, home, estates };
}

/** Where no setting decides which of several namespaces policy tests are about. */
const UNTESTED =
  "the policy tests were not run: the program is about several namespaces, or only about new ones; set GATEHOUSE_TENANT to the id of the namespace that they test";

/** Problems that a review has in other lists: rights as incapabilities, missing devices as what could not be looked at. */
const LISTED_ELSEWHERE: ReadonlySet<PlanProblem["about"]> = new Set(["rights", "device"]);

/** What the service would refuse of a plan; with a base, what of it the base has not. */
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

/** The namespaces that plans are about. */
export interface PlanEstates extends Pick<PlanNamespaces, "home" | "main"> {
  /** The stack's own namespace first, where it has one. */
  readonly estates: readonly Estate[];
  /** Changes on other services, and namespaces that could not be read, as sentences. */
  readonly unseen: string[];
  /** What else is on other services, as sentences. */
  readonly unknown: string[];
  /** The plans without what is on other services. */
  readonly plans: readonly Plan[];
}

/**
 * Reads the stack's namespace, where it has one, and every other one that plans are about.
 * @throws RequestError when the stack's namespace cannot be read; ConfigurationError as of {@link namespacesOf}
 */
export async function estatesOf(connection: Connection, plans: readonly Plan[]): Promise<PlanEstates> {
  const here = plans.map((plan) => onService(plan, connection.client.url));
  const namespaces = await namespacesOf(
    connection,
    here.map(({ plan }) => plan),
  );
  const { home, main, tenants } = namespaces;
  const { found, unreadable } = await readEach(tenants, home, (tenant) => readEstate(connection, tenant));
  return {
    ...{ home, main, estates: found },
    unseen: [...new Set(here.flatMap((one) => one.unseen)), ...unreadable.values()],
    unknown: [...new Set(here.flatMap((one) => one.unknown))],
    plans: here.map(({ plan }) => plan),
  };
}

function reviewOf(
  { client }: Connection,
  plan: Plan,
  namespaces: readonly ReviewedNamespace[],
  said: Pick<Review, "refused" | "unseen" | "unknown">,
  baseline: Baseline | undefined,
): Review {
  const { project, stack, engine } = plan;
  const changes = baseline ? revisionChanges(baseline.plan, plan) : { ...plan, unseen: [] };
  return {
    ...{ version: 1, project, stack, engine, service: client.url },
    ...(baseline && { revisions: baseline.revisions }),
    summary: changes.summary,
    changes: changedSteps(changes.steps),
    ...said,
    unseen: [...said.unseen, ...changes.unseen],
    namespaces: namespaces.map(({ review }) => review),
    twins: namespaces.flatMap(({ planned }) =>
      planned.twins
        .map(({ object, urns }) => ({ object, urns: urns.toSorted(byText) }))
        .sort(byTexts(({ object }) => object)),
    ),
  };
}

/** The steps that change something, by kind and name, since engines have them in any order. */
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
