import {
  type Access,
  type EvaluatedLogins,
  type EvaluationOptions,
  evaluateAccess,
  type NamespacePolicy,
} from "@gatehouse-access/sdk/policy";
import { LIST_NAMES, type ListName } from "../model/changes.ts";
import type { PlanSides } from "../model/namespaceObjects.ts";
import type { KindName, Objects } from "../model/object.ts";
import type { NamespaceState } from "../namespace/namespaceState.ts";
import { countingInvited, evaluatedFor } from "../namespace/readNamespace.ts";
import type { ApiKeyChange } from "../resources/apiKey/index.ts";
import { kindsWith } from "../resources/index.ts";
import type { OtherPrivilege } from "../resources/installKey/index.ts";
import type { MemberChange } from "../resources/member/index.ts";
import type { SettingChange } from "../resources/namespace/resource.ts";
import type { WorkloadChange } from "../resources/trustedWorkload.ts";
import { PLAIN } from "../style.ts";
import { byTexts, firstOf } from "../words.ts";
import { accessEffect } from "./accessEffect.ts";
import { everyDevice, type ReviewedAccess } from "./accessLines.ts";

/**
 * The logins, addresses, devices and time for which several states of a namespace are evaluated, so that their access
 * is comparable.
 */
export interface Scope {
  readonly evaluated: EvaluatedLogins;
  readonly uids: readonly string[];
  readonly time: Date;
}

/**
 * The privileges in a namespace: who may log in to which device, and until when. Also the objects that give roles,
 * forwarding or the enrollment of devices, or that protect the namespace.
 */
export interface Privileges {
  readonly state: NamespaceState;
  /** The allowed logins. Contains no logins if the access is not known. */
  readonly access: Access;
}

/**
 * Returns the privileges in a namespace. Invited users are treated as members, since they can accept their invitation
 * without a review.
 */
const privilegesOf = (
  state: NamespaceState,
  { evaluated, uids, time }: Scope,
  isKnown = state.accessUnknown === undefined,
): Privileges => ({ state, access: evaluateAccess(deciding(state.policy, isKnown), evaluated, uids, time) });

/** Returns a policy for evaluation. If it is not known which objects authorize logins, omits all of them. */
const deciding = (policy: NamespacePolicy, isKnown: boolean): NamespacePolicy =>
  isKnown ? countingInvited(policy) : { devices: policy.devices, keys: [], rules: [] };

/**
 * Evaluates two states of a namespace for the same logins, addresses and devices, so that they are comparable. If the
 * access in the second state is not known, both results contain no access.
 */
export function comparable(
  old: NamespaceState,
  now: NamespaceState,
  options: EvaluationOptions = {},
): { readonly before: Privileges; readonly after: Privileges } {
  const isKnown = now.accessUnknown === undefined;
  const [before, after] = [deciding(old.policy, isKnown), deciding(now.policy, isKnown)];
  const scope = {
    evaluated: evaluatedFor(now.facts, [before, after], options),
    uids: everyDevice(before, after).map(({ uid }) => uid),
    time: new Date(),
  };
  return { before: privilegesOf(old, scope, isKnown), after: privilegesOf(now, scope, isKnown) };
}

/** The changes to privileges other than access, with one field for each list of the report. */
export interface OtherChanges {
  /** Members who are added or removed, or whose role or expiry time changes. */
  readonly members: readonly MemberChange[];
  /** Trusted workloads that are added, removed or changed. */
  readonly workloads: readonly WorkloadChange[];
  /** API keys that are added, removed or changed. */
  readonly apiKeys: readonly ApiKeyChange[];
  /** Changed settings of the namespace, with the values before and after the change. */
  readonly settings: readonly SettingChange[];
  /** Changed privileges other than logins and roles. */
  readonly privileges: readonly OtherPrivilege[];
}

/** The changes to privileges between two states of a namespace. */
export interface PrivilegeChanges extends OtherChanges {
  /** Access changes, with losses first. Null if the access is not known. */
  readonly access: readonly ReviewedAccess[] | null;
}

/** The kinds of objects that have a list of changes, in the order of reports. */
const changing = kindsWith("changes").toSorted(
  (left, right) => LIST_NAMES.indexOf(left.changes.list) - LIST_NAMES.indexOf(right.changes.list),
);

/** The lists of changes other than access, in the order of reports. */
export const changeLists = changing.map(({ changes }) => changes);

/** Returns the changes to privileges other than access. */
function otherChanges(before: NamespaceState, after: NamespaceState): OtherChanges {
  const lists = changing.map(({ definition, changes: { list, between } }) => {
    const sides = knownSides(definition.name, before, after);
    return [list, between(...sides)] as const;
  });
  return Object.fromEntries(lists) as unknown as OtherChanges;
}

/**
 * Returns both states with the known objects of a kind. If the kind could not be read, the known objects come from the
 * plans, so that reports show the privileges that a plan gives.
 */
function knownSides(kind: KindName, before: NamespaceState, after: NamespaceState) {
  const [old, now] = [before, after].map(({ ofUnread }) => ofUnread.get(kind) ?? NO_OBJECTS);
  if (!old || !now || (old === NO_OBJECTS && now === NO_OBJECTS)) return [before, after] as const;
  const own = { name: kind };
  return [
    before.withObjects(own, changed(now.was, old)),
    after.withObjects(own, changed(old.was, now)),
  ] as const;
}

const NO_OBJECTS: PlanSides = { was: new Map(), is: new Map() };

/** Applies the changes of a plan to objects. */
const changed = (objects: Objects, { was, is }: PlanSides): Objects =>
  new Map([...[...objects].filter(([key]) => !was.has(key)), ...is]);

/**
 * Returns the changes between two states of a namespace, and notes on the parts that were not evaluated, as sentences.
 * @param before the privileges before the change, evaluated for the same logins as `after`
 */
export function differenceOf(
  before: Privileges,
  after: Privileges,
): { readonly changes: PrivilegeChanges; readonly notEvaluated: readonly string[] } {
  const { lines, notEvaluated } = accessEffect(before.access, after.access);
  const access = after.state.accessUnknown === undefined ? lines : null;
  return { changes: { access, ...otherChanges(before.state, after.state) }, notEvaluated };
}

const GAINED_MAX = 5;

/**
 * Returns the privileges that changes give, other than logins: roles above `observer`, forwarding and the enrollment of
 * devices. The summary of a review lists these privileges.
 */
export function gainsOf(changes: OtherChanges): string[] {
  const all = everyChange(changes);
  const roles = all.flatMap(({ list, change }) => list.roles(change));
  const sorted = roles.sort(
    byTexts(
      ({ role }) => String(ROLE_ORDER.indexOf(role)),
      ({ holder }) => holder,
    ),
  );
  const holders = [...Map.groupBy(sorted, ({ role }) => role)].map(
    ([role, gained]) =>
      `role ${role}: ${firstOf(
        gained.map(({ holder }) => holder),
        GAINED_MAX,
      )}`,
  );
  return [...holders, ...all.flatMap(({ list, change }) => list.gains(change))];
}

const ROLE_ORDER: readonly string[] = ["owner", "administrator", "operator", "observer"];

/** Returns the changes that weaken a protection, as sentences. */
export const weakenedBy = (changes: OtherChanges): string[] =>
  everyChange(changes)
    .filter(({ list, change }) => list.weakens(change))
    .map(({ list, change }) => `the setting ${list.sentence(change, PLAIN)}`);

/** Returns true if changes give no access and no other privilege, and do not weaken any protection. */
export const isWithoutGain = (changes: PrivilegeChanges): boolean =>
  changes.access?.every(({ change }) => change === "lost") === true &&
  everyChange(changes).every(({ list, change }) => list.isLoss(change)) &&
  gainsOf(changes).length === 0 &&
  weakenedBy(changes).length === 0;

const everyChange = (changes: OtherChanges) =>
  changeLists.flatMap((list) => changesIn(changes, list.list).map((change) => ({ list, change })));

/** Returns the changes of one list. */
export const changesIn = (changes: Partial<OtherChanges>, list: ListName): readonly unknown[] =>
  changes[list] ?? [];
