import {
  type Access,
  type AccessPolicy,
  type AccessRule,
  type EvaluationOptions,
  expiryOf,
  type Finding,
  type LintOptions,
  lint,
  SOON_DAYS,
} from "@gatehouse-access/sdk/policy";
import type { Plan } from "../engine/index.ts";
import {
  type Declarer,
  type Exception,
  type ManagedObjects,
  share,
  shownObject,
  type Unmanaged,
  unmanagedOf,
} from "../estate/coverage.ts";
import { definitionNamed, type LiveObject } from "../estate/liveObjects.ts";
import {
  type Estate,
  hasMembershipEnded,
  inOrder,
  type NamespaceState,
  withoutObjects,
} from "../estate/namespaceState.ts";
import { declaredEnds, type PlannedEstate, plannedEstate } from "../plan/planned/plannedEstate.ts";
import type { PolicyTestResult } from "../policyTests/results.ts";
import type { PolicyTestFacts } from "../policyTests/runPolicyTests.ts";
import { settingChanges } from "../resources/namespace.ts";
import { idWithin } from "../resources/values.ts";
import type { Member } from "../service/newerListings.ts";
import { byText, byTexts, counted } from "../words.ts";
import { accessEffect } from "./accessEffect.ts";
import { accesses, accessLines, firstSentences, sentencesByKey } from "./accessLines.ts";
import {
  deviceLockouts,
  memberLockouts,
  type ProtectedGroup,
  policyLockouts,
  workloadLockouts,
} from "./guards/lockouts.ts";
import { type Actor, missingPermissions } from "./guards/planProblems.ts";
import { changesMode, copiedFindings, limitationsOfModeChange } from "./modeChange.ts";
import { otherPrivileges } from "./otherPrivileges.ts";
import type {
  Coverage,
  EstateObject,
  NamespaceReview,
  ReviewedAccess,
  ReviewedFinding,
  UndeclaredObject,
} from "./report/review.ts";
import { accessSentence, isGain, PLAIN, tokensPhrase } from "./report/sections.ts";
import { apiKeyChanges, memberChanges, workloadChanges } from "./roleChanges.ts";

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
  /** Objects that the plan does not have to declare, such as objects of other stacks. */
  readonly elsewhere?: Elsewhere;
  /**
   * The review reports API keys, invitations and access that end within this number of days.
   * @default the default of the lint
   */
  readonly expiresWithin?: number;
  /** The plan whose result is the base of the comparison. @default the live namespace is the base */
  readonly base?: Plan;
}

/** A review of one namespace, and the evaluated access before and after the change. */
export interface ReviewedNamespace {
  readonly review: NamespaceReview;
  readonly before: Access;
  readonly after: Access;
  readonly planned: PlannedEstate;
  /** The reason why the access is not known. */
  readonly accessUnknown: string | undefined;
}

/** Reviews the effect of a plan on one namespace. */
export async function reviewNamespace(
  estate: Estate,
  plan: Plan,
  options: NamespaceReviewOptions,
): Promise<ReviewedNamespace> {
  const { home, policyTests, actor, base, runningId } = options;
  const isHome = estate.tenant === home;
  // Both plans use the same time, so that expiry dates are equal.
  const withinDays = options.expiresWithin ?? SOON_DAYS;
  const by = { ...(home !== undefined && { home }), now: new Date(), creatorRole: actor.role };
  const planned = inOrder(plannedEstate(estate, plan, by));
  const basePlanned = base && plannedEstate(estate, base, by);
  const was = inOrder<NamespaceState>(basePlanned ?? { ...estate, notEvaluated: [], unknown: [] });
  const { accessUnknown } = planned;
  const { before, after } = accesses(was.policy, planned.policy, { ...estate, accessUnknown }, options);
  const effect = accessEffect(before, after);
  const access = accessUnknown === undefined ? effect.lines : null;
  const invited = new Set(estate.members?.map(({ email }) => email));
  const findings = (evaluated: Access, state: NamespaceState) =>
    lint(evaluated, expiring(state, invited, options.expiresWithin));
  const unmanaged = unmanagedAccess(
    estate,
    planned,
    options.elsewhere,
    // Without a project, two folders of one name look like one stack.
    plan.engine === "terraform" ? undefined : plan,
  );
  const review: NamespaceReview = {
    tenant: estate.tenant,
    name: estate.name,
    evaluated: {
      devices: planned.policy.devices.length,
      keys: after.policy.keys.length,
      rules: after.policy.rules.length,
      ...(after.policy.identity && {
        principals: after.policy.identity.principals.length,
        policies: after.policy.identity.policies.length,
      }),
      sessions: estate.seen.sessions,
      ...after.evaluated,
    },
    access,
    members: memberChanges(was.members ?? [], planned.members ?? [], planned.policy.keys),
    workloads: workloadChanges(was.trustedWorkloads ?? [], planned.trustedWorkloads ?? []),
    apiKeys: apiKeyChanges(was.apiKeys ?? [], planned.apiKeys ?? []),
    settings: was.settings && planned.settings ? settingChanges(was.settings, planned.settings) : [],
    privileges: otherPrivileges(planned.steps, basePlanned?.steps),
    ending: {
      withinDays,
      objects: declaredEnds(planned, by.now, new Date(by.now.getTime() + withinDays * DAY_MS)),
    },
    lockouts: [
      ...memberLockouts(unended(was, by.now), unended(planned, by.now), runningId),
      ...workloadLockouts(was.trustedWorkloads ?? [], planned.trustedWorkloads ?? [], runningId),
      ...deviceLockouts(before, after, options.protect),
      ...policyLockouts(before, after),
    ],
    missingPermissions: missingPermissions(actor, planned.steps, isHome ? planned.inNewNamespaces : []),
    lint: comparedFindings([before, findings(before, was)], [after, findings(after, planned)], access ?? []),
    coverage: unmanaged.coverage,
    tests: (await policyTests?.({ ...planned, evaluated: after.evaluated })) ?? [],
    notEvaluated: [
      ...estate.notEvaluated,
      ...(estate.members ? [] : ["members could not be read; lockouts cannot be detected"]),
      ...(estate.unreadable.invitations
        ? ["invitations could not be read; unmanaged invitations cannot be detected"]
        : []),
      ...(estate.apiKeys ? [] : ["API keys could not be read; unmanaged API keys cannot be detected"]),
      ...(estate.trustedWorkloads
        ? []
        : ["trusted workloads could not be read; unmanaged workloads cannot be detected"]),
      ...planned.notEvaluated.toSorted(byText),
      ...effect.notEvaluated,
      // Unmanaged objects are the same in two revisions.
      ...(base ? [] : unmanaged.notEvaluated),
    ],
    unknown: [
      ...estate.unknown,
      ...planned.unknown.toSorted(byText),
      ...[...was.notEvaluated, ...was.unknown]
        .filter((sentence) => ![...planned.notEvaluated, ...planned.unknown].includes(sentence))
        .toSorted(byText)
        .map((sentence) => `at the base revision: ${sentence}`),
      ...undistinguished(before, after, access ?? []),
    ],
  };
  return { review, before, after, planned, accessUnknown };
}

/** Returns the members whose membership has not ended. */
const unended = ({ members = [] }: Pick<NamespaceState, "members">, now: Date): Member[] =>
  members.filter((member) => !hasMembershipEnded(member, now));

const DAY_MS = 86_400_000;

/**
 * Lint options with the trusted workloads, and the expiry of API keys and invitations. New invitations are omitted, since
 * they always expire soon.
 * @param invited the addresses of the present members and invited users
 */
function expiring(
  { members, apiKeys, trustedWorkloads = [] }: NamespaceState,
  invited: ReadonlySet<string>,
  expiresWithin: number | undefined,
): LintOptions {
  return {
    trustedWorkloads,
    ...(expiresWithin !== undefined && { expiresWithin }),
    apiKeys: (apiKeys ?? []).map(({ name, role, expiresIn }) => ({
      ...{ name, role, expiresAt: expiryOf(expiresIn) },
    })),
    invitations: (members ?? [])
      .filter(({ id, email, status }) => id !== "" && status === "pending" && invited.has(email))
      .map(({ email, role, expiresAt }) => ({ email, role, expiresAt: expiryOf(expiresAt) })),
  };
}

/**
 * The findings after the change. A finding is new unless the base has the same finding. If the access mode changes, a
 * finding about a copied filter is not new.
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

/**
 * Reports changed patterns of keys and rules that do not change any evaluated access. Without this report, such a
 * change would seem to have no effect for any login name, address or device.
 * @param changes the access changes
 */
function undistinguished(
  before: Access,
  after: Access,
  changes: readonly Pick<ReviewedAccess, "keys">[],
): string[] {
  if (changesMode(before, after)) return limitationsOfModeChange(before, after, changes);
  if (after.policy.identity) {
    const oldPolicies = new Map(before.policy.identity?.policies.map((policy) => [policy.id, policy]));
    return after.policy.identity.policies.flatMap((policy) => {
      const title = `access policy ${policy.name}`;
      const old = oldPolicies.get(policy.id);
      // Access changes show only whether a login needs a re-authentication, not how long the last one counts.
      const [was, is] = [reauthText(old ?? policy), reauthText(policy)];
      return [
        ...(changes.length > 0 ? [] : differences(title, old, policy)),
        ...(was === is ? [] : [`${title}: re-authentication ${is} (before: ${was})`]),
      ];
    });
  }
  const seen = new Set(changes.flatMap(({ keys }) => keys.map(({ fingerprint }) => fingerprint)));
  const oldKeys = new Map(before.policy.keys.map((key) => [key.fingerprint, key]));
  const keys = after.policy.keys
    .filter(({ fingerprint }) => !seen.has(fingerprint))
    .flatMap((key) => differences(`key ${key.name}`, oldKeys.get(key.fingerprint), key));
  // An access change cannot be assigned to a single rule. If access changes, the lines about these changes already show
  // the effect of changed rules, so only changed keys are reported here.
  if (changes.length > 0) return keys;
  const oldRules = new Map(before.policy.rules.map((rule) => [rule.id, rule]));
  const rules = after.policy.rules.flatMap((rule) =>
    differences(`rule ${rule.id}`, oldRules.get(rule.id), rule),
  );
  return [...keys, ...rules];
}

function reauthText({ action, requireReauth, reauthPeriod }: AccessPolicy): string {
  if (action === "deny" || !requireReauth) return "not needed";
  return reauthPeriod === null ? "needed at every login" : `counts for ${counted(reauthPeriod, "second")}`;
}

type Patterned = Pick<AccessRule, "filter"> & Partial<Pick<AccessRule, "username" | "sourceIp">>;

function differences(title: string, old: Patterned | undefined, now: Patterned): string[] {
  const before: Readonly<Record<string, string>> = patternsOf(old ?? now);
  return Object.entries(patternsOf(now))
    .filter(([field, pattern]) => before[field] !== pattern)
    .map(
      ([field, pattern]) =>
        `${title}: ${field} changes from ${JSON.stringify(before[field])} to ${JSON.stringify(pattern)}, but no ` +
        "evaluated login, address or device distinguishes these patterns; add logins and addresses with --login and --from",
    );
}

const patternsOf = ({ username = "", sourceIp = "", filter: { hostname = "" } }: Patterned) => ({
  username,
  sourceIp,
  hostname,
});

/** Objects that the reviewed program does not have to declare. */
interface Elsewhere {
  /** Objects of other stacks. */
  readonly managed: ManagedObjects;
  readonly exceptions: readonly Exception[];
}

/**
 * Computes the coverage of a namespace, and the access that unmanaged objects give.
 * @param planned the namespace after the change
 * @param declarer the stack of the plan, if the service's declarations identify it
 */
function unmanagedAccess(
  estate: Estate,
  planned: PlannedEstate,
  elsewhere: Elsewhere | undefined,
  declarer: Declarer | undefined,
) {
  const urns = new Map(planned.managed.map(({ kind, id, urn }) => [`${kind} ${id}`, urn]));
  const managed = {
    ownerOf: (object: LiveObject) =>
      urns.get(`${object.definition.name} ${idWithin(object)}`) ?? elsewhere?.managed.ownerOf(object),
  };
  const objects = declarableObjects(estate);
  const unmanaged = unmanagedOf(objects, managed, elsewhere?.exceptions ?? []);
  const { widening, notEvaluated } = wideningOf(estate, planned, unmanaged);
  const coverage: Coverage = {
    ...share(objects, unmanaged),
    unmanaged: unmanaged.map((one): UndeclaredObject => {
      const { kind, id, name, ...excepted } = shownObject(one, declarer);
      const widens = widening.get(one.object) ?? [];
      return { kind: kind as EstateObject["kind"], id, name, widens, ...excepted };
    }),
  };
  return { coverage, notEvaluated };
}

/** The objects of a namespace that count for the coverage, by kind. The owner does not count. */
function declarableObjects(estate: Estate): LiveObject[] {
  const { declarers, tenant, policy, identity, members = [], apiKeys = [], trustedWorkloads = [] } = estate;
  const objectOf = (kind: EstateObject["kind"], id: string, name: string, state?: LiveObject["state"]) => ({
    ...{ definition: definitionNamed(kind), id: `${tenant}/${id}`, name, state },
    declaredBy: declarers.get(`${kind} ${id}`),
  });
  const kinds: LiveObject[][] = [
    policy.keys.map(({ fingerprint, name }) => objectOf("PublicKey", fingerprint, name)),
    policy.rules.map(({ id, action, priority }) =>
      objectOf("FirewallRule", id, `${id}: ${action} at priority ${priority}`),
    ),
    (identity?.policies ?? []).map(({ id, name }) => objectOf("AccessPolicy", id, name)),
    (identity?.serviceAccounts ?? []).map(({ id, name }) => objectOf("ServiceAccount", id, name)),
    members
      .filter(({ role }) => role !== "owner")
      .map(({ id, email, role }) => objectOf("Member", id, email, { role })),
    // In states, the creation time and the creator identify an API key. So the object of a key contains all fields of
    // the key.
    apiKeys.map((key) => objectOf("ApiKey", key.name, key.name, { ...key })),
    trustedWorkloads.map(({ id, name }) => objectOf("TrustedWorkload", id, name)),
  ];
  const byNameAndId = byTexts<LiveObject>(
    ({ name }) => name,
    ({ id }) => id,
  );
  return kinds.flatMap((objects) => objects.sort(byNameAndId));
}

/**
 * Maximum number of unmanaged objects other than keys that are evaluated. Each of these objects requires an evaluation
 * of the namespace.
 */
const OTHERS_MAX = 20;

/**
 * Returns the access that each unmanaged key, rule, access policy, service account and trusted workload adds, and the
 * roles above observer of unmanaged members and API keys, as sentences.
 */
function wideningOf(estate: Estate, planned: PlannedEstate, unmanaged: readonly Unmanaged[]) {
  const objects = unmanaged.map(({ object }) => object);
  const gainedBy = (some: readonly LiveObject[]) => {
    const { before, after } = accesses(withoutObjects(planned, some).policy, planned.policy, estate);
    return accessLines(before, after).filter(isGain);
  };
  const ofKind = (kind: string) => objects.filter(({ definition }) => definition.name === kind);
  const keys = ofKind("PublicKey");
  const byKey = sentencesByKey(keys.length === 0 ? [] : gainedBy(keys));
  const widening = new Map<LiveObject, readonly string[]>();
  for (const key of keys) widening.set(key, firstSentences(byKey.get(idWithin(key)) ?? []));
  const workloads = new Map(planned.trustedWorkloads?.map((workload) => [workload.id, workload]));
  for (const object of ofKind("TrustedWorkload")) {
    const workload = workloads.get(idWithin(object));
    widening.set(
      object,
      workload ? [`gives the role ${workload.role} to ${tokensPhrase(workload, PLAIN)}`] : [],
    );
  }
  for (const object of objects) {
    const { role } = object.state ?? {};
    if (role === "operator" || role === "administrator") widening.set(object, [`gives the role ${role}`]);
  }
  const deciding = planned.policy.identity ? ["AccessPolicy", "ServiceAccount", "Member"] : ["FirewallRule"];
  const isExcepted = new Set(unmanaged.filter(({ exception }) => exception).map(({ object }) => object));
  const others = deciding
    .flatMap(ofKind)
    .sort((left, right) => Number(isExcepted.has(left)) - Number(isExcepted.has(right)));
  for (const object of others.slice(0, OTHERS_MAX)) {
    const sentences = gainedBy([object]).map((line) => accessSentence(line, PLAIN));
    widening.set(object, firstSentences([...(widening.get(object) ?? []), ...sentences]));
  }
  const skipped = others.slice(OTHERS_MAX).filter((object) => !isExcepted.has(object)).length;
  const objectsText = counted(skipped, "further unmanaged object");
  const notEvaluated =
    skipped === 0 ? [] : [`the access of ${objectsText} was not evaluated: the limit is ${OTHERS_MAX}`];
  return { widening, notEvaluated };
}
