import {
  Access,
  type AccessChange,
  type AccessPolicy,
  accessChanges,
  type DomainOptions,
  expiryOf,
  type Finding,
  type LintOptions,
  lint,
} from "@gatehouse-access/sdk/policy";
import type { Plan } from "../engine/index.ts";
import { byDevice, domainFor, type Estate, inOrder, type Member, type NamespaceState } from "./estate.ts";
import { type Actor, incapabilities } from "./guards/incapabilities.ts";
import { deviceLockouts, memberLockouts, type ProtectedGroup } from "./guards/lockouts.ts";
import { type ManagedObject, type PlannedEstate, plannedEstate } from "./planned/plannedEstate.ts";
import { runPolicyTests } from "./policyTests/runPolicyTests.ts";
import type {
  Coverage,
  EstateObject,
  MemberChange,
  NamespaceReview,
  ReviewedAccess,
  ReviewedFinding,
} from "./report/review.ts";
import { undistinguished } from "./undistinguished.ts";
import { DeviceGroups } from "./words/deviceGroups.ts";
import { byText, byTexts } from "./words/order.ts";

/** What a review of one namespace depends on, beside its objects and the plan. */
export interface NamespaceReviewOptions extends DomainOptions {
  /** The folder of the policy tests; undefined for a namespace that they are not about. */
  readonly folder: string | undefined;
  /** The namespace of resources that name none. */
  readonly home: string;
  readonly actor: Actor;
  /** Id of the user who carries the change out; undefined for an API key. */
  readonly runningUser: string | undefined;
  readonly protect: readonly ProtectedGroup[];
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
  const by = { home, now: new Date(), makerRole: actor.role };
  const planned = inOrder(plannedEstate(estate, plan, by));
  const was = inOrder(base ? plannedEstate(estate, base, by) : { ...estate, unknown: [] });
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
    coverage: coverageOf(estate, planned.managed),
    tests:
      folder === undefined
        ? []
        : (await runPolicyTests(folder, { ...planned, unknown: estate.unknown, domain: after.domain })).tests,
    unknown: [
      ...estate.unknown,
      ...planned.unknown.toSorted(byText),
      ...was.unknown
        .filter((sentence) => !planned.unknown.includes(sentence))
        .toSorted(byText)
        .map((sentence) => `at the base revision, ${sentence}`),
      ...(isHome ? planned.notes.toSorted(byText) : []),
      ...undistinguished(before, after, access),
    ],
  };
  return { review, before, after, planned };
}

/** Who can reach what by two policies of a namespace, in a form in which the two can be compared. */
export function accesses(
  before: AccessPolicy,
  after: AccessPolicy,
  estate: Pick<Estate, "seen">,
  options: DomainOptions = {},
): { readonly before: Access; readonly after: Access } {
  const domain = domainFor(estate, [before, after], options);
  const uids = everyDevice(before, after).map(({ uid }) => uid);
  return { before: new Access(before, domain, uids), after: new Access(after, domain, uids) };
}

/** The devices of both policies; a device that both have is as it will be. */
const everyDevice = (before: AccessPolicy, after: AccessPolicy) =>
  [...new Map([...before.devices, ...after.devices].map((device) => [device.uid, device])).values()].sort(
    byDevice,
  );

/**
 * The access that a change gives and takes, in few lines: login names and keys that gain or lose the same are in one.
 * Losses come first, since they lock out, then the lines about most devices.
 * @param before and `after` must have the same domain and list of uids
 */
export function accessLines(before: Access, after: Access): ReviewedAccess[] {
  const byLogin = new Map<string, AccessChange & { logins: string[] }>();
  for (const change of accessChanges(before, after)) {
    const id = JSON.stringify([change.change, change.key.fingerprint, change.addresses, change.devices]);
    const same = byLogin.get(id);
    if (same) same.logins.push(change.login);
    else byLogin.set(id, { ...change, logins: [change.login] });
  }
  const groups = new DeviceGroups(everyDevice(before.policy, after.policy));
  const lines = new Map<string, ReviewedAccess & { keys: ReviewedAccess["keys"][number][] }>();
  for (const { change, key, logins, addresses, devices } of byLogin.values()) {
    const id = JSON.stringify([change, logins, addresses, devices]);
    const known = lines.get(id);
    const { fingerprint, name } = key;
    if (known) known.keys.push({ fingerprint, name });
    else {
      const anyAddress = addresses.length === after.domain.addresses.length;
      const anyLogin = logins.length === after.domain.logins.length;
      const keys = [{ fingerprint, name }];
      const where = groups.of(devices);
      lines.set(id, { change, keys, logins, anyLogin, addresses, anyAddress, devices, where });
    }
  }
  return [...lines.values()].sort(
    (left, right) =>
      Number(left.change === "gained") - Number(right.change === "gained") ||
      right.devices.length - left.devices.length ||
      byText(left.keys[0]?.name ?? "", right.keys[0]?.name ?? ""),
  );
}

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

/** What is linted. */
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

/** How much of a namespace a program declares. */
function coverageOf(estate: Estate, managed: readonly ManagedObject[]): Coverage {
  const isManaged = new Set(managed.map(({ kind, id }) => `${kind} ${id}`));
  const objects = declarableObjects(estate);
  const unmanaged = objects.filter(({ kind, id }) => !isManaged.has(`${kind} ${id}`));
  const total = objects.length;
  const count = total - unmanaged.length;
  const percent = total === 0 ? 100 : Math.floor((100 * count) / total);
  return { managed: count, total, percent, unmanaged };
}

/** The objects of a namespace that a program can declare, kind by kind. The owner is none of them. */
function declarableObjects({ policy, members = [], apiKeys = [] }: Estate): EstateObject[] {
  const kinds: EstateObject[][] = [
    policy.keys.map(({ fingerprint: id, name }) => ({ kind: "PublicKey", id, name })),
    policy.rules.map(({ id, action, priority }) => ({
      ...{ kind: "FirewallRule", id, name: `${id}: ${action} at priority ${priority}` },
    })),
    members
      .filter(({ role }) => role !== "owner")
      .map(({ id, email }) => ({ kind: "Member", id, name: email })),
    apiKeys.map(({ name }) => ({ kind: "ApiKey", id: name, name })),
  ];
  return kinds.flatMap((objects) => objects.sort(byNameAndId));
}

const byNameAndId = byTexts<EstateObject>(
  ({ name }) => name,
  ({ id }) => id,
);
