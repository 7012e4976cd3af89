import {
  Access,
  type AccessPolicy,
  type DomainOptions,
  expiryOf,
  type Finding,
  type LintOptions,
  lint,
} from "@gatehouse-access/sdk/policy";
import type { Plan } from "../engine/index.ts";
import type { Estate } from "./estate.ts";
import { type Actor, incapabilities } from "./guards/capabilities.ts";
import { deviceLockouts, memberLockouts, type ProtectedGroup } from "./guards/lockouts.ts";
import { byDevice, liveState, type NamespaceState, plannedState } from "./planned/namespaceState.ts";
import { type PlannedEstate, plannedEstate } from "./planned/plannedEstate.ts";
import { domainOfEnds, factsOf } from "./policyTests/domainOfEnds.ts";
import { runPolicyTests } from "./policyTests/policyTests.ts";
import { accessLines } from "./report/accessLines.ts";
import { coverageOf } from "./report/coverage.ts";
import { memberChanges } from "./report/memberChanges.ts";
import type { NamespaceReview, ReviewedFinding } from "./report/review.ts";
import { undistinguished } from "./report/undistinguished.ts";
import { DeviceGroups } from "./words/deviceGroups.ts";
import { byText } from "./words/order.ts";

/** What a review of one namespace depends on, beside its objects and the plan. */
export interface NamespaceReviewOptions extends DomainOptions {
  /** The folder of the policy tests; undefined for a namespace that they are not about. */
  readonly folder: string | undefined;
  /** Namespace of resources that name none. */
  readonly home: string;
  readonly actor: Actor;
  /** Id of the user who carries the change out; undefined for an API key. */
  readonly runningUser: string | undefined;
  readonly protect: readonly ProtectedGroup[];
  /** Days that are soon; see the lint. */
  readonly soonDays?: number;
  /** What the plan is compared with: what this plan would make of the namespace. Default: the live namespace. */
  readonly base?: Plan;
}

/** A review, and the access that it compares: of the live or the base's namespace, and as it will be. */
export interface ReviewedNamespace {
  readonly review: NamespaceReview;
  readonly before: Access;
  readonly after: Access;
  readonly planned: PlannedEstate;
}

/** What a plan means for one namespace. */
export async function reviewNamespace(
  estate: Estate,
  plan: Plan,
  options: NamespaceReviewOptions,
): Promise<ReviewedNamespace> {
  const { home, folder, actor, base } = options;
  const isHome = estate.tenant === home;
  // One time for both, or what expires would differ by how long the review takes.
  const now = new Date();
  const planned = plannedEstate(estate, plan, { home, now });
  const is = plannedState(estate, planned, actor.role);
  const was = base
    ? plannedState(estate, plannedEstate(estate, base, { home, now }), actor.role)
    : liveState(estate);
  const { before, after } = accesses(was.policy, is.policy, estate, options);
  const { devices, keys, rules } = is.policy;
  const groups = new DeviceGroups(everyDevice(was.policy, is.policy));
  const isManaged = new Set(planned.managed.map(({ kind, id }) => `${kind} ${id}`));
  const lines = accessLines(before, after);
  const facts = factsOf(estate, is, after.domain);
  const review: NamespaceReview = {
    tenant: estate.tenant,
    name: estate.name,
    domain: {
      devices: devices.length,
      keys: keys.length,
      rules: rules.length,
      sessions: estate.seen.sessions,
      ...after.domain,
    },
    access: lines.map((line) => ({ ...line, where: groups.of(line.devices).text })),
    members: memberChanges(was.seats, is.seats),
    lockouts: [
      ...memberLockouts(was.seats, is.seats, options.runningUser),
      ...deviceLockouts(before, after, options.protect),
    ],
    incapabilities: incapabilities(actor, planned.steps, isHome ? planned.begun : []),
    lint: findings(
      { access: before, ends: expiring(was, options.soonDays) },
      { access: after, ends: expiring(is, options.soonDays) },
    ),
    coverage: coverageOf(estate, ({ kind, id }) => isManaged.has(`${kind} ${id}`)),
    tests: folder === undefined ? [] : (await runPolicyTests(folder, facts)).tests,
    unknown: [
      ...estate.unknown,
      ...is.unknown,
      ...was.unknown
        .filter((sentence) => !is.unknown.includes(sentence))
        .map((sentence) => `at the base revision, ${sentence}`),
      ...(isHome ? planned.notes.toSorted(byText) : []),
      ...undistinguished(before, after, lines),
    ],
  };
  return { review, before, after, planned };
}

function accesses(before: AccessPolicy, after: AccessPolicy, estate: Estate, options: DomainOptions) {
  const domain = domainOfEnds([before, after], estate, options);
  const uids = everyDevice(before, after).map(({ uid }) => uid);
  return { before: new Access(before, domain, uids), after: new Access(after, domain, uids) };
}

/** Those of both; of one that is in both, as it will be. */
const everyDevice = (before: AccessPolicy, after: AccessPolicy) =>
  [...new Map([...before.devices, ...after.devices].map((device) => [device.uid, device])).values()].sort(
    byDevice,
  );

/** What is linted. */
interface Linted {
  readonly access: Access;
  readonly ends: LintOptions;
}

/** What ends soon or never. An invitation that the change sends would end soon whatever it is. */
function expiring(
  { listed: { members, apiKeys } }: NamespaceState,
  soonDays: number | undefined,
): LintOptions {
  return {
    ...(soonDays !== undefined && { soonDays }),
    apiKeys: (apiKeys ?? []).map(({ name, role, expiresIn }) => ({
      ...{ name, role, expiresAt: expiryOf(expiresIn) },
    })),
    invitations: (members ?? [])
      .filter(({ id, status }) => id !== "" && status === "pending")
      .map(({ email, role, expiresAt }) => ({ email, role, expiresAt: expiryOf(expiresAt) })),
  };
}

/** The findings after the change; one that was there before, in the same words, is not new. */
function findings(before: Linted, after: Linted): ReviewedFinding[] {
  const id = ({ rule, object, field, message }: Finding) =>
    JSON.stringify([rule, object.kind, object.id, field, message]);
  const old = new Set(lint(before.access, before.ends).map(id));
  return lint(after.access, after.ends).map((finding) => ({ ...finding, isNew: !old.has(id(finding)) }));
}
