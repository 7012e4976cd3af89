import { type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import { hasPassed } from "@gatehouse-access/sdk/policy";
import type { Plan, Shown } from "../../engine/index.ts";
import type { Estate, NamespaceState } from "../../estate/namespaceState.ts";
import { Claims, DuplicateDeclarationError } from "../../lifecycle/claims.ts";
import type { ResourceDefinition } from "../../resources/definition.ts";
import { pendingText } from "../../resources/deviceSelector.ts";
import { newSettings } from "../../resources/namespace.ts";
import type { ApiKey } from "../../service/listings.ts";
import { byText, byTexts, firstOf } from "../../words.ts";
import { createdNamespaces, isHidden, losesObject, type PlannedStep, stepsOf } from "../steps.ts";
import {
  contradictions,
  type Declared,
  type DuplicateDeclarations,
  duplicateDeclarations,
} from "./conflicts.ts";
import { Draft, hiddenValues, type PlannedApiKey, UnpredictableError } from "./draft.ts";
import { apiKeyNameToday, type Kind, kinds, renameTags, shownEnd } from "./kinds.ts";

/** An object on the service that a resource of the stack manages. */
export interface ManagedObject {
  readonly kind: string;
  /**
   * Id of the object: fingerprint of a key, user id of a member, current name of an API key, otherwise the object's
   * id without the tenant.
   */
  readonly id: string;
  readonly urn: string;
}

/** A namespace after a plan. */
export interface PlannedEstate extends NamespaceState {
  /** Live objects that resources of the stack manage or adopt. */
  readonly managed: readonly ManagedObject[];
  readonly duplicates: readonly DuplicateDeclarations[];
  /** Contradictions between changed rules of the same priority, as sentences. */
  readonly contradictions: readonly string[];
  /** Notes about resources in namespaces that the plan creates, as sentences. */
  readonly notes: readonly string[];
  readonly steps: readonly PlannedStep[];
  /** The steps in namespaces that the plan creates. */
  readonly inNewNamespaces: readonly PlannedStep[];
}

interface PlannedEstateOptions {
  /** The namespace of resources without a tenant. @default the estate's namespace */
  readonly home?: string;
  /** Time at which the plan is applied. The expiry of new API keys depends on this time. @default now */
  readonly now?: Date;
  /**
   * The role of the user or API key that applies the plan: the default role of new API keys. Undefined if unknown. A role
   * below administrator counts as unknown, because such a caller cannot create API keys: another caller applies the plan.
   */
  readonly creatorRole?: Role | undefined;
}

/**
 * Applies a plan to a copy of a namespace.
 *
 * Objects of unchanged resources keep their live values, even if the state differs. A resource is unpredictable if a
 * decisive input is secret or unknown, or if its device is missing. For an unpredictable resource, an existing object
 * stays unchanged, a new object is omitted, and `notEvaluated` reports the resource.
 * @param plan a preview with values
 * @throws Error if the plan has no values
 */
export function plannedEstate(
  estate: Estate,
  plan: Plan,
  { home = estate.tenant, now = new Date(), creatorRole }: PlannedEstateOptions = {},
): PlannedEstate {
  const { steps, inNewNamespaces, notEvaluated } = stepsOf(plan, estate.tenant, home);
  const canCreate = creatorRole !== undefined && roleAtLeast(creatorRole, "administrator");
  const draft = new Draft(estate, now, canCreate ? creatorRole : undefined, statedOwners(steps));
  const done = carryOut(draft, steps);
  const apiKeys = draft.apiKeys && [...draft.apiKeys.values()];
  const opposed = contradictions(draft);
  const modeChange = unreadAfterModeChange(draft);
  return {
    policy: draft.policy(),
    accessUnknown: estate.accessUnknown ?? modeChange.accessUnknown,
    members: draft.members && [...draft.members.values()],
    apiKeys: apiKeys?.filter(hasRole),
    trustedWorkloads: draft.trustedWorkloads && [...draft.trustedWorkloads.values()],
    settings: draft.settings,
    managed: managedBy(draft, steps, done.declared),
    duplicates: duplicateDeclarations(draft, done.declared),
    notEvaluated: [
      ...notEvaluated,
      ...done.notEvaluated,
      ...modeChange.notEvaluated,
      ...opposed.filter(({ isUndecided }) => isUndecided).map(({ text }) => text),
      ...possiblyRegained(draft),
      ...(apiKeys ?? []).filter((key) => !hasRole(key)).map(roleNote),
    ],
    unknown: [
      ...steps.filter(leavesObject).map(leftNote),
      ...steps.flatMap((planned) => pendingNote(draft, planned)),
      ...invitedNote(draft),
    ],
    unreadable: estate.unreadable,
    contradictions: opposed.map(({ text }) => text),
    notes: inNewNamespaces.map(newNamespaceNote),
    steps,
    inNewNamespaces,
  };
}

/** An object whose access ends, as the program declares it. */
export interface DeclaredEnd {
  readonly kind: string;
  /** Name of the resource. */
  readonly resource: string;
  /** The time when the access ends, in RFC 3339. */
  readonly until: string;
}

/** Returns the declared ends of access after `now`, until a limit, sorted by time. Omits ends that are not known. */
export const declaredEnds = (
  { steps }: Pick<PlannedEstate, "steps">,
  now: Date,
  limit: Date,
): DeclaredEnd[] =>
  steps
    .flatMap(({ step, definition, after }) => {
      const until = after && (kindOf(definition).endOf ?? shownEnd)(after, now);
      if (until === undefined || hasPassed(until, now) || !hasPassed(until, limit)) return [];
      return [{ kind: definition.name, resource: step.name, until }];
    })
    .sort(byTexts(({ until, kind, resource }) => `${until} ${kind} ${resource}`));

/** Reports lists that could not be read, and that have an effect only after the plan changes the namespace's mode. */
function unreadAfterModeChange({ estate, accessPoliciesDecide, members }: Draft) {
  if (!accessPoliciesDecide || !estate.identity || estate.identity.decides) {
    return { accessUnknown: undefined, notEvaluated: [] };
  }
  const accessUnknown = members
    ? undefined
    : `the access in the namespace ${estate.name} after the plan is not known: the members could not be read`;
  return {
    accessUnknown,
    notEvaluated: [...estate.identity.notEvaluated, ...(accessUnknown ? [accessUnknown] : [])],
  };
}

const hasRole = (key: PlannedApiKey): key is ApiKey => key.role !== undefined;

const roleNote = ({ name }: PlannedApiKey) =>
  `API key "${name}" will have the role of its creator, which is unknown; declare the role`;

const leavesObject = ({ step, before }: PlannedStep) => losesObject(step) && before?.retained === true;

const leftNote = ({ title }: PlannedStep) =>
  `${title} leaves its object unmanaged on the service; the access that the object gives remains`;

/**
 * Reports new members. Before the invitation, it is unknown whether an e-mail address has an account on the service.
 */
function invitedNote(draft: Draft): string[] {
  const invited = unknownUsers(draft);
  if (invited.length === 0) return [];
  return [
    `only the invitation shows whether these addresses have an account: ${firstOf(invited.toSorted(), NAMED_MAX)}`,
  ];
}

const NAMED_MAX = 5;

/** Returns the addresses of new members whose user ids are not known. */
function unknownUsers({ estate, members }: Draft): string[] {
  const known = new Set(estate.members?.map(({ email }) => email));
  return [...(members?.values() ?? [])].flatMap(({ id, email }) =>
    id === "" && !known.has(email) ? [email] : [],
  );
}

/**
 * Reports the keys that a new member may own: keys of former members whose addresses the service does not return. Their
 * access may return with the member.
 */
function possiblyRegained(draft: Draft): string[] {
  const { estate, members, keys } = draft;
  const added = unknownUsers(draft);
  if (added.length === 0 || !members) return [];
  const present = (estate.members ?? []).map(({ id }) => id);
  // The address in the state may be outdated, since users can change the address of their account.
  const known = new Set([...members.keys(), ...present, ...estate.formerOwners.values()]);
  const orphans = [...keys.values()].filter(({ owner }) => owner !== undefined && !known.has(owner));
  if (orphans.length === 0) return [];
  const names = firstOf(orphans.map(({ name }) => name).sort(byText), NAMED_MAX);
  return [
    `the keys ${names} belong to former members, and may admit logins again: this plan adds ${firstOf(added.toSorted(), NAMED_MAX)}, and the service does not return whose keys these are; review with the credential of an administrator, or delete the keys`,
  ];
}

/** Returns the ids of key owners in the state, by the declared e-mail address in lower case. */
const statedOwners = (steps: readonly PlannedStep[]): ReadonlyMap<string, string> =>
  new Map(
    steps.flatMap(({ before }) => {
      const [owner, ownerId] = [before?.inputs.owner, before?.outputs.ownerId];
      const isKnown =
        typeof owner === "string" && typeof ownerId === "string" && owner !== "" && ownerId !== "";
      return isKnown ? [[owner.toLowerCase(), ownerId] as const] : [];
    }),
  );

/** Reports a new resource that selects a pending device by its name or MAC address. */
function pendingNote(draft: Draft, planned: PlannedStep): string[] {
  const { step, definition, title, after } = planned;
  const selector = after?.inputs.device;
  const isNew = step.op === "create" || step.op === "replace";
  if (!isNew || !definition.inputs.device || typeof selector !== "string" || isHidden(selector)) return [];
  const uid = draft.findUid(selector.toLowerCase());
  const device = uid === undefined ? undefined : draft.devices.get(uid);
  if (device?.status !== "pending" || uid === selector) return [];
  return [`${title}: ${pendingText(selector)}`];
}

/** Namespaces that a plan creates, and resources in these namespaces, as sorted sentences. */
export const newNamespaceNotes = (plan: Plan): string[] =>
  stepsOf(plan, "", "").inNewNamespaces.map(newNamespaceNote).sort(byText);

/** Counts the namespaces that a plan creates, and the other resources in these namespaces. */
export function newNamespacesOf(plan: Plan): { readonly namespaces: number; readonly resources: number } {
  const namespaces = createdNamespaces(plan).length;
  return { namespaces, resources: stepsOf(plan, "", "").inNewNamespaces.length - namespaces };
}

function newNamespaceNote({ title, definition, after }: PlannedStep): string {
  if (definition.name !== "Namespace")
    return `${title} is in a namespace that this plan creates, and is not evaluated`;
  const settings = newSettings(after?.inputs.settings, (value) => isHidden(value as Shown))
    .map(({ setting, to }) => `${setting} ${JSON.stringify(to)}`)
    .join(", ");
  return `${title} creates a namespace, which has no objects yet${settings === "" ? "" : `; settings: ${settings}`}`;
}

function managedBy(draft: Draft, steps: readonly PlannedStep[], declared: readonly Declared[]) {
  const managed = new Map<string, ManagedObject>();
  const add = ({ step, definition, before }: PlannedStep, whole: string | undefined) => {
    if (whole === undefined) return;
    const isApiKey = definition.name === "ApiKey" && before !== undefined;
    const id = isApiKey ? apiKeyNameToday(draft, before) : whole.slice(whole.indexOf("/") + 1);
    const object = { kind: definition.name, id, urn: step.urn };
    if (kindOf(definition).isLive?.(draft, id)) managed.set(JSON.stringify(object), object);
  };
  for (const planned of steps) if (planned.before) add(planned, planned.step.id);
  for (const { planned, id } of declared) add(planned, id);
  return [...managed.values()];
}

function kindOf({ name }: ResourceDefinition): Kind {
  const kind = kinds.get(name);
  if (!kind) throw new Error(`the review does not support the resource ${name}`);
  return kind;
}

interface Work {
  readonly draft: Draft;
  readonly claims: Claims;
  readonly declared: Declared[];
  readonly notEvaluated: string[];
}

/**
 * Applies steps to a draft. As in the provider, removals come first. An object that passes from one resource to another
 * resource is not removed.
 */
function carryOut(draft: Draft, steps: readonly PlannedStep[]): Work {
  const work: Work = { draft, claims: new Claims(), declared: [], notEvaluated: [] };
  const isEarly = ({ definition }: PlannedStep) => definition.name === "Tag" || definition.name === "Device";
  const others = steps.filter((planned) => !isEarly(planned));
  // Tags and devices come first, since other resources refer to their new names.
  for (const group of [steps.filter(isEarly), others]) carryOutTogether(work, group);
  return work;
}

function carryOutTogether(work: Work, steps: readonly PlannedStep[]): void {
  const { draft, claims } = work;
  const done = [...kinds.keys()]
    .flatMap((name) => steps.filter(({ definition }) => definition.name === name))
    .filter((planned) => declare(work, planned));
  const isRename = ({ step, definition }: PlannedStep) => definition.name === "Tag" && step.op === "update";
  renameTags(draft, done.filter(isRename));
  for (const planned of done) {
    const { step, definition, before } = planned;
    if (!before || !removesObject(planned) || (step.id && claims.isHeld(definition, step.id))) continue;
    kindOf(definition).remove?.(draft, planned, before, (key) => claims.isHeldAlone(key));
  }
  for (const planned of done) {
    const { step, definition, before, after } = planned;
    const kind = kindOf(definition);
    attempt(work, planned, () => {
      if (after && createsObject(planned)) kind.createOrAdopt?.(draft, planned, after);
      else if (before && after && step.op === "update") kind.update?.(draft, planned, before, after);
    });
  }
}

// A replacement that moves an object to another namespace removes the object in the old namespace and creates it in the
// new namespace.
const removesObject = (planned: PlannedStep) => losesObject(planned.step) && !leavesObject(planned);
const createsObject = ({ step: { op } }: PlannedStep) => op === "create" || op === "replace";

/**
 * Records the object that a resource will manage. Returns false if this object cannot be predicted; the resource then
 * keeps its current object.
 */
function declare(work: Work, planned: PlannedStep): boolean {
  const { draft, claims, declared } = work;
  const isClear = attempt(work, planned, () => {
    const id = idOf(draft, planned);
    if (!planned.after) return;
    declared.push({ planned, id });
    hold(claims, planned, id);
  });
  if (!isClear) hold(claims, planned, planned.step.id);
  return isClear;
}

function attempt({ notEvaluated }: Work, { title, before }: PlannedStep, work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (!(error instanceof UnpredictableError)) throw error;
    const treatment = before ? "with its object unchanged" : "without this resource";
    notEvaluated.push(`${title}: ${error.message}; access is evaluated ${treatment}`);
    return false;
  }
}

/**
 * The id of the object that a resource will manage, with the tenant; undefined if the object does not exist yet.
 * @throws UnpredictableError if the id is unknown
 */
function idOf(draft: Draft, planned: PlannedStep): string | undefined {
  const { step, definition, after } = planned;
  if (!after || step.op === "same" || step.op === "import" || definition.name === "Namespace") return step.id;
  const kind = kindOf(definition);
  const hidden = kind.decisive.filter((name) => isHidden(after.inputs[name]));
  if (hidden.length > 0) throw hiddenValues(hidden);
  if (!createsObject(planned)) return step.id;
  const id = kind.idOf?.(draft, after, planned);
  return id === undefined ? undefined : `${draft.estate.tenant}/${id}`;
}

function hold(claims: Claims, { step, definition }: PlannedStep, id: string | undefined): void {
  if (id === undefined) return;
  try {
    claims.hold(definition, step.urn, id);
  } catch (error) {
    // Ignored here, since `duplicateDeclarations` reports all resources that declare the same object.
    if (!(error instanceof DuplicateDeclarationError)) throw error;
  }
}
