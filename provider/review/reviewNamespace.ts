import {
  type Access,
  type EvaluationOptions,
  type Finding,
  type LintOptions,
  lint,
  SOON_DAYS,
} from "@gatehouse-access/sdk/policy";
import { DAY } from "@gatehouse-access/sdk/times";
import type { Plan } from "../engine/index.ts";
import type { LiveObject } from "../model/object.ts";
import {
  type Declarer,
  type Exception,
  type ManagedObjects,
  share,
  shownObject,
  unmanagedOf,
} from "../namespace/coverage.ts";
import { watchedIn } from "../namespace/liveObjects.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { type AppliedPlan, applyPlan } from "../plan/planned/appliedPlan.ts";
import { declaredEnds } from "../plan/planned/notes.ts";
import type { PolicyTestResult } from "../policyTests/results.ts";
import type { PolicyTestFacts } from "../policyTests/runPolicyTests.ts";
import type { ReviewedAccess } from "../privileges/accessLines.ts";
import { wideningOf } from "../privileges/effects.ts";
import { copiedFindings, undistinguished } from "../privileges/modeChange.ts";
import { comparable, differenceOf } from "../privileges/privileges.ts";
import { kindsWith } from "../resources/index.ts";
import { hasMembershipEnded, membersOf } from "../resources/member/index.ts";
import type { Member } from "../resources/member/listing.ts";
import { workloadsOf } from "../resources/trustedWorkload.ts";
import { byText } from "../words.ts";
import {
  deviceLockouts,
  memberLockouts,
  type ProtectedGroup,
  policyLockouts,
  workloadLockouts,
} from "./guards/lockouts.ts";
import { type Actor, missingPermissions } from "./guards/planProblems.ts";
import type { Coverage, NamespaceReview, ReviewedFinding, UndeclaredObject } from "./report/review.ts";

/** Options of {@link reviewNamespace}. */
export interface NamespaceReviewOptions extends EvaluationOptions {
  /**
   * Runs the policy tests that check this namespace.
   * @default no tests
   */
  readonly policyTests?: (facts: PolicyTestFacts) => Promise<readonly PolicyTestResult[]>;
  /** The namespace of resources without a tenant; undefined if all resources have a tenant. */
  readonly home: string | undefined;
  /** The user or API key that applies the plan. */
  readonly actor: Actor;
  /** Id of the user or the trusted workload that applies the plan; undefined for an API key. */
  readonly runningId: string | undefined;
  /** Groups of devices that must stay reachable. */
  readonly protect: readonly ProtectedGroup[];
  /** The objects that the plan need not declare, such as objects of other stacks. */
  readonly elsewhere?: Elsewhere;
  /**
   * The number of days for expiry reports: the review reports API keys, invitations and access that expire within this
   * period.
   * @default the default of the lint
   */
  readonly expiresWithin?: number;
  /**
   * The plan of the base revision. The review compares the results of both plans. @default the live namespace is the
   * base
   */
  readonly base?: Plan;
}

/** A review of one namespace, with the evaluated access before and after the change. */
export interface ReviewedNamespace {
  readonly review: NamespaceReview;
  readonly before: Access;
  readonly after: Access;
  readonly planned: AppliedPlan;
  /** The reason why the access is not known. Undefined if the access is known. */
  readonly accessUnknown: string | undefined;
}

/** Reviews the effect of a plan on one namespace. */
export async function reviewNamespace(
  live: NamespaceState,
  plan: Plan,
  options: NamespaceReviewOptions,
): Promise<ReviewedNamespace> {
  const { home, policyTests, actor, base, runningId } = options;
  // Both plans use the same time, so that their expiry times are equal.
  const withinDays = options.expiresWithin ?? SOON_DAYS;
  const by = { ...(home !== undefined && { home }), now: new Date(), creatorRole: actor.role };
  const planned = applyPlan(live, plan, by);
  const state = planned.state.inOrder();
  const was = (
    base ? applyPlan(live, base, by).state : live.with({ notEvaluated: [], unknown: [] })
  ).inOrder();
  const { before, after } = comparable(was, state, options);
  const difference = differenceOf(before, after);
  const { access } = difference.changes;
  const [lintBefore, lintAfter] = [before, after].map((side) =>
    lint(side.access, lintOptions(side.state, options.expiresWithin)),
  ) as [Finding[], Finding[]];
  // If no project is set for Terraform, the plans of two folders with the same name have the same project and stack
  // name. Declarations in the audit trail then do not identify the stack, so a Terraform plan has no declarer.
  const declarer = plan.engine === "terraform" ? undefined : plan;
  const unmanaged = unmanagedAccess(live, planned, options.elsewhere, declarer);
  const review: NamespaceReview = {
    tenant: live.tenant,
    name: live.name,
    evaluated: {
      devices: state.policy.devices.length,
      keys: after.access.policy.keys.length,
      rules: after.access.policy.rules.length,
      ...after.access.decider.counts,
      sessions: live.facts.seen.sessions,
      ...after.access.evaluated,
    },
    ...difference.changes,
    ending: {
      withinDays,
      objects: declaredEnds(planned.steps, by.now, new Date(by.now.getTime() + withinDays * DAY)),
    },
    lockouts: [
      ...memberLockouts(unended(was, by.now), unended(state, by.now), runningId),
      ...workloadLockouts(workloadsOf(was) ?? [], workloadsOf(state) ?? [], runningId),
      ...deviceLockouts(before.access, after.access, options.protect),
      ...policyLockouts(before.access, after.access),
    ],
    missingPermissions: missingPermissions(
      actor,
      planned.steps,
      live.tenant === home ? planned.inNewNamespaces : [],
    ),
    lint: comparedFindings([before.access, lintBefore], [after.access, lintAfter], access ?? []),
    coverage: unmanaged.coverage,
    tests: (await policyTests?.({ state, evaluated: after.access.evaluated })) ?? [],
    notEvaluated: [
      ...live.notEvaluated,
      ...[...live.unread.values()].map(({ what, missed }) => `${what} could not be read; ${missed}`),
      ...state.notEvaluated.toSorted(byText),
      ...difference.notEvaluated,
      // A review of two revisions omits unmanaged objects, because they are the same in both revisions.
      ...(base ? [] : unmanaged.notEvaluated),
    ],
    unknown: [
      ...live.unknown,
      ...state.unknown.toSorted(byText),
      ...[...was.notEvaluated, ...was.unknown]
        .filter((sentence) => ![...state.notEvaluated, ...state.unknown].includes(sentence))
        .toSorted(byText)
        .map((sentence) => `at the base revision: ${sentence}`),
      ...undistinguished(before.access, after.access, access ?? []),
    ],
  };
  const { accessUnknown } = state;
  return { review, before: before.access, after: after.access, planned, accessUnknown };
}

/** Returns the members whose membership has not expired. */
const unended = (state: NamespaceState, now: Date): Member[] =>
  (membersOf(state) ?? []).filter((member) => !hasMembershipEnded(member, now));

/** Returns the lint options for a namespace. They contain the objects that the lint checks in addition to logins. */
const lintOptions = (state: NamespaceState, expiresWithin: number | undefined): LintOptions =>
  Object.assign(
    { ...(expiresWithin !== undefined && { expiresWithin }) },
    ...kindsWith("linted").map(({ definition, linted }) => linted(state.of(definition) ?? new Map())),
  );

/**
 * Returns the findings after the change. A finding is new unless the base has the same finding. A change of the access
 * mode can copy a filter to a new object. A finding about the copied filter is not new.
 */
function comparedFindings(
  before: readonly [Access, readonly Finding[]],
  after: readonly [Access, readonly Finding[]],
  access: readonly ReviewedAccess[],
): ReviewedFinding[] {
  const copied = copiedFindings(before, after, access);
  const id = ({ rule, object, field, message }: Finding) =>
    JSON.stringify([rule, object.kind, object.id, field, message]);
  const old = new Set(before[1].map(id));
  return after[1].map((finding) => ({ ...finding, isNew: !old.has(id(finding)) && !copied.has(finding) }));
}

/** Objects that the reviewed program need not declare. */
interface Elsewhere {
  /** Objects of other stacks. */
  readonly managed: ManagedObjects;
  readonly exceptions: readonly Exception[];
}

/**
 * Computes the coverage of a namespace, and the privileges that unmanaged objects give.
 * @param planned the namespace after the change
 * @param declarer the stack of the plan; undefined if the service's declarations do not identify the stack
 */
function unmanagedAccess(
  live: NamespaceState,
  planned: AppliedPlan,
  elsewhere: Elsewhere | undefined,
  declarer: Declarer | undefined,
) {
  const managed = {
    ownerOf: (object: LiveObject) => planned.managed.ownerOf(object) ?? elsewhere?.managed.ownerOf(object),
  };
  const { objects } = watchedIn(live);
  const unmanaged = unmanagedOf(objects, managed, elsewhere?.exceptions ?? []);
  const excepted = new Set(unmanaged.filter(({ exception }) => exception).map(({ object }) => object));
  const widening = wideningOf(
    planned.state.inOrder(),
    unmanaged.map(({ object }) => object),
    (object) => excepted.has(object),
  );
  const coverage: Coverage = {
    ...share(objects, unmanaged),
    unmanaged: unmanaged.map((one): UndeclaredObject => {
      return { ...shownObject(one, declarer), widens: widening.of.get(one.object) ?? [] };
    }),
  };
  return { coverage, notEvaluated: widening.notEvaluated };
}
