import type { Role } from "@gatehouse-access/sdk/contract";
import type { Plan } from "../../engine/index.ts";
import type { Estate, NamespaceState } from "../../estate/namespaceState.ts";
import { Claims, DuplicateDeclarationError } from "../../lifecycle/claims.ts";
import type { ResourceDefinition } from "../../resources/definition.ts";
import { pendingText } from "../../resources/deviceSelector.ts";
import type { ApiKey } from "../../service/listings.ts";
import { byText, firstOf } from "../../words.ts";
import { isHidden, losesObject, type PlannedStep, stepsOf } from "../steps.ts";
import { contradictions, type Declared, type Twins, twinsOf } from "./conflicts.ts";
import {
  apiKeyNameToday,
  Draft,
  type Kind,
  kinds,
  type PlannedApiKey,
  renameTags,
  UnpredictableError,
} from "./draft.ts";

/** An object of the service that a resource of the stack manages. */
export interface ManagedObject {
  /** Name of the resource's class. */
  readonly kind: string;
  /**
   * Fingerprint of a public key, id of a rule, user id of a member, name of an API key today, uid of a device (also for
   * its tags), `uid/tag` of an attachment, tenant of a namespace.
   */
  readonly id: string;
  readonly urn: string;
}

/** What a namespace will be once a plan is carried out. What nobody can tell of it is in `unseen`. */
export interface PlannedEstate extends NamespaceState {
  /** Objects that are on the service today, and that resources of the stack manage or take over. */
  readonly managed: readonly ManagedObject[];
  readonly twins: readonly Twins[];
  /** Rules of which only the order of their creation decides, and of which the plan makes or changes one, as sentences. */
  readonly contradictions: readonly string[];
  /** Namespaces that the plan makes, and resources in them, as sentences: they are no part of this namespace. */
  readonly notes: readonly string[];
  /** The steps of the plan about this namespace. */
  readonly steps: readonly PlannedStep[];
  /** The steps about namespaces that the plan makes: the same whichever namespace is asked for. */
  readonly begun: readonly PlannedStep[];
}

/** How a plan is read. */
export interface PlannedEstateOptions {
  /**
   * The namespace of resources that name none.
   * @default the estate's
   */
  readonly home?: string;
  /**
   * When the plan is carried out, which decides when new API keys expire.
   * @default now
   */
  readonly now?: Date;
  /** The role of whoever carries the plan out, which an API key gets that names none; undefined where not known. */
  readonly makerRole?: Role | undefined;
}

/**
 * What a namespace will be once a plan is carried out.
 *
 * The objects of unchanged resources stay as they really are, whatever the state says of them. Where nobody can tell
 * what a resource will be (an input that decides is not known yet or is secret, a device is not there), its object
 * stays as it is, and a new one is left out. Either is said in `unseen`.
 * @param plan a preview with values
 * @throws Error when the plan has no values
 */
export function plannedEstate(
  estate: Estate,
  plan: Plan,
  { home = estate.tenant, now = new Date(), makerRole }: PlannedEstateOptions = {},
): PlannedEstate {
  const draft = new Draft(estate, now, makerRole);
  const { steps, begun, unseen } = stepsOf(plan, estate.tenant, home);
  const done = carryOut(draft, steps);
  const apiKeys = draft.apiKeys && [...draft.apiKeys.values()];
  const opposed = contradictions(draft);
  return {
    policy: draft.policy(),
    members: draft.members && [...draft.members.values()],
    apiKeys: apiKeys?.filter(hasRole),
    managed: managedBy(draft, steps, done.declared),
    twins: twinsOf(draft, done.declared),
    unseen: [
      ...unseen,
      ...done.unseen,
      ...opposed.filter(({ isUndecided }) => isUndecided).map(({ text }) => text),
    ],
    unknown: [
      ...steps.filter(leavesObject).map(leftNote),
      ...(apiKeys ?? []).filter((key) => !hasRole(key)).map(roleNote),
      ...steps.flatMap((planned) => pendingNote(draft, planned)),
      ...invitedNote(draft),
    ],
    unreadable: estate.unreadable,
    contradictions: opposed.map(({ text }) => text),
    notes: begun.map(begunNote),
    steps,
    begun,
  };
}

const hasRole = (key: PlannedApiKey): key is ApiKey => key.role !== undefined;

const roleNote = ({ name }: PlannedApiKey) =>
  `API key "${name}" will have the role of who makes it, which is not known`;

const leavesObject = ({ step, before }: PlannedStep) => losesObject(step) && before?.retained === true;

const leftNote = ({ title }: PlannedStep) =>
  `${title} leaves its object where it is, unmanaged: the access that it gives stays`;

/** No request tells whether a service knows an address before it is invited. */
function invitedNote({ estate, members }: Draft): string[] {
  const known = new Set(estate.members?.map(({ id }) => id));
  const invited = [...(members?.values() ?? [])].filter(({ id }) => !known.has(id)).map(({ email }) => email);
  return invited.length === 0
    ? []
    : [
        `whether the service knows ${firstOf(invited.toSorted(), NAMED_MAX)} shows only when they are invited`,
      ];
}

/** Most addresses that a sentence names. */
const NAMED_MAX = 5;

/** Of a new resource that a name or a MAC address gives to a device which nobody has accepted by then. */
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

/** Namespaces that a plan makes, and resources in them, as sentences in order. */
export const begunNotes = (plan: Plan): string[] => stepsOf(plan, "", "").begun.map(begunNote).sort(byText);

const begunNote = ({ title, definition }: PlannedStep) =>
  definition.name === "Namespace"
    ? `${title} makes a namespace: nothing of it is there yet`
    : `${title} is for a namespace that is being made, and is no part of this one`;

function managedBy(
  draft: Draft,
  steps: readonly PlannedStep[],
  declared: readonly Declared[],
): ManagedObject[] {
  const found = new Map<string, ManagedObject>();
  const add = ({ step, definition, before }: PlannedStep, whole: string | undefined) => {
    if (whole === undefined) return;
    const isApiKey = definition.name === "ApiKey" && before !== undefined;
    const id = isApiKey ? apiKeyNameToday(draft, before) : whole.slice(whole.indexOf("/") + 1);
    const object = { kind: definition.name, id, urn: step.urn };
    if (kindOf(definition).isLive?.(draft, id)) found.set(JSON.stringify(object), object);
  };
  for (const planned of steps) if (planned.before) add(planned, planned.step.id);
  for (const { planned, id } of declared) add(planned, id);
  return [...found.values()];
}

function kindOf({ name }: ResourceDefinition): Kind {
  const kind = kinds.get(name);
  if (!kind) throw new Error(`the review knows no resource ${name}`);
  return kind;
}

/** Steps that are being carried out on paper. */
interface Work {
  readonly draft: Draft;
  /** Which resource has which object by the end of the plan. */
  readonly claims: Claims;
  /** The resources of the program, without those of which nobody can tell what they will be. */
  readonly declared: Declared[];
  /** What nobody can tell, as sentences. */
  readonly unseen: string[];
}

/**
 * Carries out steps on paper. An object that a resource loses is removed, unless another resource of the program has it
 * by then, as the provider does it. New objects come afterwards, although engines delete last: so an object that one
 * resource loses and another one gets stays.
 */
function carryOut(draft: Draft, steps: readonly PlannedStep[]): Work {
  const work: Work = { draft, claims: new Claims(), declared: [], unseen: [] };
  const isEarly = ({ definition }: PlannedStep) => definition.name === "Tag" || definition.name === "Device";
  // Other resources refer to tags and devices by the names that they have by then.
  carryOutTogether(work, steps.filter(isEarly));
  carryOutTogether(
    work,
    steps.filter((planned) => !isEarly(planned)),
  );
  return work;
}

function carryOutTogether(work: Work, steps: readonly PlannedStep[]): void {
  const { draft, claims } = work;
  const done = inOrderOfKinds(steps).filter((planned) => declare(work, planned));
  renameTags(
    draft,
    done.filter(({ step, definition }) => definition.name === "Tag" && step.op === "update"),
  );
  for (const planned of done) {
    const { step, definition, before } = planned;
    if (!before || !removesObject(planned) || (step.id && claims.isHeld(definition, step.id))) continue;
    kindOf(definition).remove?.(draft, planned, before, (key) => claims.isHeldAlone(key));
  }
  for (const planned of done) {
    const { step, definition, before, after } = planned;
    const kind = kindOf(definition);
    attempt(work, planned, () => {
      if (after && makesObject(planned)) kind.createOrAdopt?.(draft, planned, after);
      else if (before && after && step.op === "update") kind.update?.(draft, planned, before, after);
    });
  }
}

/** Steps of one kind stay in the order of the plan. */
const inOrderOfKinds = (steps: readonly PlannedStep[]) =>
  [...kinds.keys()].flatMap((name) => steps.filter(({ definition }) => definition.name === name));

// A replacement that moves an object to another namespace removes it from the one, and makes it in the other.
const removesObject = (planned: PlannedStep) => losesObject(planned.step) && !leavesObject(planned);
const makesObject = ({ step: { op } }: PlannedStep) => op === "create" || op === "replace";

/** Notes which object a resource will have; false where nobody can tell, so that it keeps the one that it has. */
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

function attempt({ unseen }: Work, { title, before }: PlannedStep, work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (!(error instanceof UnpredictableError)) throw error;
    const left = before ? "what it has stays as it is" : "it is left out";
    unseen.push(`${title}: ${error.message}; ${left} here`);
    return false;
  }
}

/**
 * The id, tenant and all, of the object that a resource will have; undefined for an object that is still to be made.
 * @throws UnpredictableError
 */
function idOf(draft: Draft, planned: PlannedStep): string | undefined {
  const { step, definition, after } = planned;
  if (!after || step.op === "same" || step.op === "import") return step.id;
  const kind = kindOf(definition);
  const hidden = kind.decisive.filter((name) => isHidden(after.inputs[name]));
  if (hidden.length > 0) {
    throw new UnpredictableError(
      `its ${hidden.join(" and ")} ${hidden.length === 1 ? "is" : "are"} secret or not known before the change is made`,
    );
  }
  if (!makesObject(planned)) return step.id;
  const id = kind.idOf?.(draft, after);
  return id === undefined ? undefined : `${draft.estate.tenant}/${id}`;
}

function hold(claims: Claims, { step, definition }: PlannedStep, id: string | undefined): void {
  if (id === undefined) return;
  try {
    claims.hold(definition, step.urn, id);
  } catch (error) {
    // Twins have a list of their own; here it is enough that one of them has the object.
    if (!(error instanceof DuplicateDeclarationError)) throw error;
  }
}
