import { hasPassed } from "@gatehouse-access/sdk/times";
import type { Plan, Shown } from "../../engine/index.ts";
import { isNamespace } from "../../model/definition.ts";
import type { Draft } from "../../model/draft.ts";
import { declaredEnd, isHidden, type PlannedStep, UnpredictableError } from "../../model/plannedStep.ts";
import { isPendingSelected } from "../../resources/device.ts";
import { pendingText } from "../../resources/deviceSelector.ts";
import { kindOf, kinds } from "../../resources/index.ts";
import { membersOf } from "../../resources/member/index.ts";
import { newSettings } from "../../resources/namespace/resource.ts";
import { publicKey } from "../../resources/publicKey.ts";
import { byText, byTexts, firstOf } from "../../words.ts";
import { createdNamespaces, stepsOf } from "../steps.ts";

const NAMED_MAX = 5;

/** A declared object with an expiry time. */
export interface DeclaredEnd {
  readonly kind: string;
  /** Name of the resource. */
  readonly resource: string;
  /** The expiry time, RFC 3339. */
  readonly until: string;
}

/**
 * Returns the declared expiry times after `now` and up to `limit`, sorted by time. Omits expiry times that are not
 * known.
 */
export const declaredEnds = (steps: readonly PlannedStep[], now: Date, limit: Date): DeclaredEnd[] =>
  steps
    .flatMap((planned) => {
      const until = endIn(planned, now);
      if (until === "" || hasPassed(until, now) || !hasPassed(until, limit)) return [];
      return [{ kind: planned.definition.name, resource: planned.step.name, until }];
    })
    .sort(byTexts(({ until, kind, resource }) => `${until} ${kind} ${resource}`));

function endIn(planned: PlannedStep, now: Date): string {
  const { after } = planned;
  const { declaredEnd: declaredEndOf } = kindOf(planned).plan;
  if (!after) return "";
  try {
    if (declaredEndOf) return declaredEndOf(after, now);
    return isHidden(after.inputs.expiresAt) ? "" : declaredEnd(after);
  } catch (error) {
    // `applyPlan` reports an invalid expiry time.
    if (error instanceof UnpredictableError) return "";
    throw error;
  }
}

/**
 * Reports lists that could not be read. These lists affect access only after the plan changes the namespace's access
 * mode.
 */
export const unreadAfterModeChange = ({ live, accessPoliciesDecide }: Draft): readonly string[] =>
  accessPoliciesDecide && !live.accessPoliciesDecide ? live.facts.unreadIdentity : [];

/**
 * Returns sentences about unknown facts: facts about the objects after the plan that are not known before the apply.
 */
export const unknownFacts = (draft: Draft): string[] =>
  kinds.flatMap(({ plan }) => plan.unknownAfter?.(draft) ?? []);

/** Reports an object that stays on the service after the resource is removed. */
export const leftNote = ({ title }: PlannedStep): string =>
  `${title} leaves its object unmanaged on the service; the access that the object gives remains`;

/**
 * Reports new members who may not have an account. The service checks whether an e-mail address has an account only
 * when it invites the member.
 */
export function invitedNote(draft: Draft): string[] {
  const invited = unknownUsers(draft);
  if (invited.length === 0) return [];
  return [
    `whether ${firstOf(invited.toSorted(), NAMED_MAX)} ${invited.length === 1 ? "has an account" : "have accounts"} on the service. The service checks an address only when it invites the member.`,
  ];
}

/** Returns the e-mail addresses of new members whose user ids are not known. */
function unknownUsers(draft: Draft): string[] {
  const known = new Set(membersOf(draft.live)?.map(({ email }) => email));
  return (membersOf(draft) ?? []).flatMap(({ id, email }) => (id === "" && !known.has(email) ? [email] : []));
}

/**
 * Reports the keys that a new member may own. These are keys of former members whose e-mail addresses the service does
 * not return. If the new member is the former member, these keys give access again.
 */
export function possiblyRegained(draft: Draft): string[] {
  const { live } = draft;
  const added = unknownUsers(draft);
  const members = membersOf(draft);
  if (added.length === 0 || !members) return [];
  const ids = [...members, ...(membersOf(live) ?? [])].map(({ id, email }) => id || email.toLowerCase());
  // The e-mail address in the state may be outdated, since users can change the address of their account.
  const known = new Set([...ids, ...live.facts.formerOwners.values()]);
  const keys = [...(draft.of(publicKey.definition)?.values() ?? [])];
  const orphans = keys.filter(({ state: { ownerId } }) => ownerId && !known.has(String(ownerId)));
  if (orphans.length === 0) return [];
  const names = firstOf(orphans.map(({ name }) => name).sort(byText), NAMED_MAX);
  return [
    `the keys ${names} belong to former members, and may admit logins again: this plan adds ${firstOf(added.toSorted(), NAMED_MAX)}, and the service does not return whose keys these are; review with the credential of an administrator, or delete the keys`,
  ];
}

/** Reports a new resource that selects a pending device by its name or MAC address. */
export function pendingNote(draft: Draft, { step, definition, title, after }: PlannedStep): string[] {
  const selector = after?.inputs.device;
  const isNew = step.op === "create" || step.op === "replace";
  if (!isNew || !definition.inputs.device || typeof selector !== "string" || isHidden(selector)) return [];
  return isPendingSelected(draft, selector) ? [`${title}: ${pendingText(selector)}`] : [];
}

/** Returns sorted sentences about the namespaces that a plan creates, and about the resources in these namespaces. */
export const newNamespaceNotes = (plan: Plan): string[] =>
  stepsOf(plan, "", "").inNewNamespaces.map(newNamespaceNote).sort(byText);

/** Counts the namespaces that a plan creates, and the other resources in these namespaces. */
export function newNamespacesOf(plan: Plan): { readonly namespaces: number; readonly resources: number } {
  const namespaces = createdNamespaces(plan).length;
  return { namespaces, resources: stepsOf(plan, "", "").inNewNamespaces.length - namespaces };
}

/** Reports a namespace that a plan creates, or a resource in this namespace. */
export function newNamespaceNote({ title, definition, after }: PlannedStep): string {
  if (!isNamespace(definition))
    return `${title} is in a namespace that this plan creates, and is not evaluated`;
  const settings = newSettings(after?.inputs.settings, (value) => isHidden(value as Shown))
    .map(({ setting, to }) => `${setting} ${JSON.stringify(to)}`)
    .join(", ");
  return `${title} creates a namespace, which has no objects yet${settings === "" ? "" : `; settings: ${settings}`}`;
}
