import {
  type Access,
  type AccessRule,
  type DomainOptions,
  expiryOf,
  type Finding,
  type LintOptions,
  lint,
} from "@gatehouse-access/sdk/policy";
import type { Plan } from "../engine/index.ts";
import { type Exception, type ManagedObjects, share, shownObject, unmanagedOf } from "../estate/coverage.ts";
import { definitionNamed, type LiveObject } from "../estate/liveObjects.ts";
import {
  type Estate,
  inOrder,
  type Member,
  type NamespaceState,
  withoutObjects,
} from "../estate/namespaceState.ts";
import { type PlannedEstate, plannedEstate } from "../plan/planned/plannedEstate.ts";
import { runPolicyTests } from "../policyTests/runPolicyTests.ts";
import { idWithin } from "../resources/values.ts";
import { byText, byTexts } from "../words.ts";
import { accesses, accessLines, firstSentences, sentencesByKey } from "./accessLines.ts";
import { deviceLockouts, memberLockouts, type ProtectedGroup } from "./guards/lockouts.ts";
import { type Actor, incapabilities } from "./guards/planProblems.ts";
import type {
  Coverage,
  EstateObject,
  MemberChange,
  NamespaceReview,
  ReviewedAccess,
  ReviewedFinding,
  UndeclaredObject,
} from "./report/review.ts";
import { accessSentence, PLAIN } from "./report/sections.ts";

/** What a review of one namespace depends on, beside its objects and the plan. */
export interface NamespaceReviewOptions extends DomainOptions {
  /** The folder of the policy tests; undefined for a namespace that they are not about. */
  readonly folder: string | undefined;
  /** The namespace of resources that name none; undefined where each names one. */
  readonly home: string | undefined;
  readonly actor: Actor;
  /** Id of the user who carries the change out; undefined for an API key. */
  readonly runningUser: string | undefined;
  readonly protect: readonly ProtectedGroup[];
  /** What may be there although the plan does not declare it; default nothing. */
  readonly elsewhere?: Elsewhere;
  /** Within how many days something expires soon; see the lint. @default 14 */
  readonly soonDays?: number;
  /**
   * Another plan, with which the reviewed one is compared: with the namespace as this plan would leave it.
   * @default the reviewed plan is compared with the live namespace
   */
  readonly base?: Plan;
}

/** A review, and what it was made from. */
export interface ReviewedNamespace {
  readonly review: NamespaceReview;
  /** Who can reach what in the live namespace, or in the namespace as the base would leave it. */
  readonly before: Access;
  /** Who can reach what in the namespace as the plan will leave it. */
  readonly after: Access;
  readonly planned: PlannedEstate;
}

/** What a plan means for one namespace. */
export async function reviewNamespace(
  estate: Estate,
  plan: Plan,
  options: NamespaceReviewOptions,
): Promise<ReviewedNamespace> {
  const { home, folder, actor, base, runningUser } = options;
  const isHome = estate.tenant === home;
  // One time for both plans: otherwise what expires would differ by how long the review takes.
  const by = { ...(home !== undefined && { home }), now: new Date(), makerRole: actor.role };
  const planned = inOrder(plannedEstate(estate, plan, by));
  const was = inOrder(base ? plannedEstate(estate, base, by) : { ...estate, unseen: [], unknown: [] });
  const { before, after } = accesses(was.policy, planned.policy, estate, options);
  const access = accessLines(before, after);
  const review: NamespaceReview = {
    tenant: estate.tenant,
    name: estate.name,
    domain: {
      devices: planned.policy.devices.length,
      keys: planned.policy.keys.length,
      rules: planned.policy.rules.length,
      sessions: estate.seen.sessions,
      ...after.domain,
    },
    access,
    members: memberChanges(was.members ?? [], planned.members ?? []),
    lockouts: [
      ...memberLockouts(was.members ?? [], planned.members ?? [], runningUser),
      ...deviceLockouts(before, after, options.protect),
    ],
    incapabilities: incapabilities(actor, planned.steps, isHome ? planned.begun : []),
    lint: findings(
      { access: before, ends: expiring(was, options.soonDays) },
      { access: after, ends: expiring(planned, options.soonDays) },
    ),
    coverage: unmanagedAccess(estate, planned, options.elsewhere),
    tests:
      folder === undefined ? [] : (await runPolicyTests(folder, { ...planned, domain: after.domain })).tests,
    unseen: [...estate.unseen, ...unreadParts(estate), ...planned.unseen.toSorted(byText)],
    unknown: [
      ...estate.unknown,
      ...planned.unknown.toSorted(byText),
      ...[...was.unseen, ...was.unknown]
        .filter((sentence) => ![...planned.unseen, ...planned.unknown].includes(sentence))
        .toSorted(byText)
        .map((sentence) => `at the base revision, ${sentence}`),
      ...undistinguished(before, after, access),
    ],
  };
  return { review, before, after, planned };
}

/** What of a review needs members or API keys, where the credential may not read them. */
const unreadParts = ({ members, apiKeys }: Estate): string[] => [
  ...(members ? [] : ["members could not be read, so that nobody knows whom the change would lock out"]),
  ...(apiKeys ? [] : ["API keys could not be read, so that nobody knows which ones are in no program"]),
];

type Roled = Pick<Member, "email" | "role">;

/** Members who come, go, or get another role. */
export function memberChanges(before: readonly Roled[], after: readonly Roled[]): MemberChange[] {
  const was = new Map(before.map(({ email, role }) => [email, role]));
  const is = new Map(after.map(({ email, role }) => [email, role]));
  const changes = [...new Set([...was.keys(), ...is.keys()])].flatMap((email): MemberChange[] => {
    const [from, to] = [was.get(email), is.get(email)];
    if (from === to) return [];
    const change = from === undefined ? "added" : to === undefined ? "removed" : "role";
    return [{ change, email, ...(from && { from }), ...(to && { to }) }];
  });
  return changes.sort(byTexts(({ email }) => email));
}

interface Linted {
  readonly access: Access;
  readonly ends: LintOptions;
}

/** API keys and invitations, which may end soon or never. Invitations that the change sends would always end soon. */
function expiring({ members, apiKeys }: NamespaceState, soonDays: number | undefined): LintOptions {
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

/** The findings after the change. A finding that was there before, in the same words, is not new. */
function findings(before: Linted, after: Linted): ReviewedFinding[] {
  const id = ({ rule, object, field, message }: Finding) =>
    JSON.stringify([rule, object.kind, object.id, field, message]);
  const old = new Set(lint(before.access, before.ends).map(id));
  return lint(after.access, after.ends).map((finding) => ({ ...finding, isNew: !old.has(id(finding)) }));
}

/**
 * Patterns that change although nothing that was looked at tells the two apart. Only examples of login names, addresses
 * and devices are looked at: without a word about such a change it would seem to mean nothing.
 * @param changes the access that the change gives and takes
 * @returns sentences
 */
function undistinguished(
  before: Access,
  after: Access,
  changes: readonly Pick<ReviewedAccess, "keys">[],
): string[] {
  const seen = new Set(changes.flatMap(({ keys }) => keys.map(({ fingerprint }) => fingerprint)));
  const oldKeys = new Map(before.policy.keys.map((key) => [key.fingerprint, key]));
  const keys = after.policy.keys
    .filter(({ fingerprint }) => !seen.has(fingerprint))
    .flatMap((key) => differences(`key ${key.name}`, oldKeys.get(key.fingerprint), key));
  // Where access changes, nobody can tell which rule changes it. The lines show that there is something to look at.
  if (changes.length > 0) return keys;
  const oldRules = new Map(before.policy.rules.map((rule) => [rule.id, rule]));
  const rules = after.policy.rules.flatMap((rule) =>
    differences(`rule ${rule.id}`, oldRules.get(rule.id), rule),
  );
  return [...keys, ...rules];
}

type Patterned = Pick<AccessRule, "username" | "filter"> & Partial<Pick<AccessRule, "sourceIp">>;

function differences(title: string, old: Patterned | undefined, now: Patterned): string[] {
  const before: Readonly<Record<string, string>> = patternsOf(old ?? now);
  return Object.entries(patternsOf(now))
    .filter(([field, pattern]) => before[field] !== pattern)
    .map(
      ([field, pattern]) =>
        `${title}: ${field} changes from ${JSON.stringify(before[field])} to ${JSON.stringify(pattern)}, which no ` +
        "login name, address or device that was looked at tells apart (--login and --from add some)",
    );
}

const patternsOf = ({ username, sourceIp = "", filter: { hostname = "" } }: Patterned) => ({
  username,
  sourceIp,
  hostname,
});

/** What may be on a service although the reviewed program does not declare it. */
export interface Elsewhere {
  /** What the stacks manage that are named beside the reviewed one. */
  readonly managed: ManagedObjects;
  readonly exceptions: readonly Exception[];
}

/**
 * How much of a namespace programs declare, and what the unmanaged objects let people reach.
 * @param planned the namespace once the change is made
 */
export function unmanagedAccess(
  estate: Estate,
  planned: PlannedEstate,
  elsewhere: Elsewhere | undefined,
): Coverage {
  const urns = new Map(planned.managed.map(({ kind, id, urn }) => [`${kind} ${id}`, urn]));
  const managed = {
    ownerOf: (object: LiveObject) =>
      urns.get(`${object.definition.name} ${idWithin(object)}`) ?? elsewhere?.managed.ownerOf(object),
  };
  const objects = declarableObjects(estate);
  const unmanaged = unmanagedOf(objects, managed, elsewhere?.exceptions ?? []);
  const widening = wideningOf(
    estate,
    planned,
    unmanaged.map(({ object }) => object),
  );
  return {
    ...share(objects, unmanaged),
    unmanaged: unmanaged.map((one): UndeclaredObject => {
      const { kind, id, name, ...excepted } = shownObject(one);
      const widens = widening.get(one.object) ?? [];
      return { kind: kind as EstateObject["kind"], id, name, widens, ...excepted };
    }),
  };
}

/** The objects of a namespace that a review counts, kind by kind. The owner is none of them. */
function declarableObjects({ tenant, policy, members = [], apiKeys = [] }: Estate): LiveObject[] {
  const objectOf = (kind: EstateObject["kind"], id: string, name: string, state?: LiveObject["state"]) => ({
    ...{ definition: definitionNamed(kind), id: `${tenant}/${id}`, name, state },
  });
  const kinds: LiveObject[][] = [
    policy.keys.map(({ fingerprint, name }) => objectOf("PublicKey", fingerprint, name)),
    policy.rules.map(({ id, action, priority }) =>
      objectOf("FirewallRule", id, `${id}: ${action} at priority ${priority}`),
    ),
    members.filter(({ role }) => role !== "owner").map(({ id, email }) => objectOf("Member", id, email)),
    // States know an API key by when it was made, and by whom.
    apiKeys.map((key) => objectOf("ApiKey", key.name, key.name, { ...key })),
  ];
  return kinds.flatMap((objects) => objects.sort(byNameAndId));
}

const byNameAndId = byTexts<LiveObject>(
  ({ name }) => name,
  ({ id }) => id,
);

/** Most rules whose own part is told: each takes an evaluation of the whole namespace. */
const RULES_MAX = 20;

/** What each of some keys and rules lets people reach, as sentences. */
function wideningOf(
  estate: Estate,
  planned: PlannedEstate,
  objects: readonly LiveObject[],
): ReadonlyMap<LiveObject, readonly string[]> {
  const gainedBy = (some: readonly LiveObject[]) => {
    const { before, after } = accesses(withoutObjects(planned, some).policy, planned.policy, estate);
    return accessLines(before, after).filter(({ change }) => change === "gained");
  };
  const ofKind = (kind: string) => objects.filter(({ definition }) => definition.name === kind);
  const keys = ofKind("PublicKey");
  const byKey = keys.length === 0 ? new Map<string, string[]>() : sentencesByKey(gainedBy(keys));
  const byRule = ofKind("FirewallRule")
    .slice(0, RULES_MAX)
    .map((rule) => [rule, gainedBy([rule]).map((line) => accessSentence(line, PLAIN))] as const);
  return new Map(
    [...keys.map((key) => [key, byKey.get(idWithin(key)) ?? []] as const), ...byRule].map(
      ([object, sentences]) => [object, firstSentences(sentences)],
    ),
  );
}
