import { type Role, roleAtLeast } from "@gatehouse-access/sdk/contract";
import type { Plan, ResourceValues } from "../../engine/index.ts";
import { Claims, DuplicateDeclarationError } from "../../lifecycle/claims.ts";
import { isNamespace } from "../../model/definition.ts";
import { Draft } from "../../model/draft.ts";
import { STAGES } from "../../model/kind.ts";
import {
  declaredEnd,
  hiddenValues,
  isHidden,
  knownInputs,
  losesObject,
  nameIn,
  type PlannedStep,
  UnpredictableError,
} from "../../model/plannedStep.ts";
import { hasEnded } from "../../model/validity.ts";
import { idWithin } from "../../model/values.ts";
import { ManagedObjects } from "../../namespace/coverage.ts";
import type { NamespaceState } from "../../namespace/namespaceState.ts";
import { identityUnknown } from "../../namespace/readNamespace.ts";
import { kindOf } from "../../resources/index.ts";
import type { Values } from "../../values.ts";
import { stepsOf } from "../steps.ts";
import {
  contradictions,
  type Declared,
  type DuplicateDeclarations,
  duplicateDeclarations,
} from "./conflicts.ts";
import {
  invitedNote,
  leftNote,
  newNamespaceNote,
  pendingNote,
  possiblyRegained,
  unknownFacts,
  unreadAfterModeChange,
} from "./notes.ts";

/** A namespace after a plan, and facts about the plan. */
export interface AppliedPlan {
  /**
   * The namespace after the plan. Its `notEvaluated` and `unknown` contain only sentences about the plan, not those
   * about the live namespace.
   */
  readonly state: NamespaceState;
  /** The live objects that resources of the stack manage or adopt. */
  readonly managed: ManagedObjects;
  readonly duplicates: readonly DuplicateDeclarations[];
  /** Contradictions between changed rules of the same priority, as sentences. */
  readonly contradictions: readonly string[];
  /** Notes about resources in namespaces that the plan creates, as sentences. */
  readonly notes: readonly string[];
  readonly steps: readonly PlannedStep[];
  /** The steps in namespaces that the plan creates. */
  readonly inNewNamespaces: readonly PlannedStep[];
}

interface ApplyOptions {
  /** The namespace of resources without a tenant. @default the live namespace */
  readonly home?: string;
  /** Time at which the plan is applied. The expiry of new API keys depends on this time. @default now */
  readonly now?: Date;
  /**
   * The role of the user or API key that applies the plan. A new API key without a declared role gets this role.
   * Undefined if the role is unknown. A role below `administrator` is treated as unknown: a caller with such a role
   * cannot create API keys, so a different caller applies the plan.
   */
  readonly creatorRole?: Role | undefined;
}

/**
 * Applies a plan to a copy of a namespace: creates, updates and deletes its objects by their inputs. The code of each
 * object kind adds only the effects on the service that the inputs do not describe.
 *
 * Objects of unchanged resources keep their live values, even if the state differs. A resource is unpredictable if a
 * decisive input is secret or unknown, or if its device is missing. For an unpredictable resource, an existing object
 * stays unchanged and a new object is omitted. `notEvaluated` reports the resource.
 * @param plan a preview with values
 * @throws Error if the plan has no values
 */
export function applyPlan(
  live: NamespaceState,
  plan: Plan,
  { home = live.tenant, now = new Date(), creatorRole }: ApplyOptions = {},
): AppliedPlan {
  const { steps, inNewNamespaces, notEvaluated } = stepsOf(plan, live.tenant, home);
  const canCreate = creatorRole !== undefined && roleAtLeast(creatorRole, "administrator");
  const draft = new Draft(live, now, canCreate ? creatorRole : undefined, statedOwners(steps));
  const done = carryOut(draft, steps);
  const opposed = contradictions(draft);
  const planned = live.with({
    objects: draft.objects(),
    ofUnread: draft.ofUnread(),
    accessPoliciesDecide: draft.accessPoliciesDecide,
  });
  const isUndecided = planned.accessPoliciesDecide && live.accessUnknown === undefined;
  const undecided = isUndecided ? identityUnknown(planned) : undefined;
  const state = planned.with({
    accessUnknown: live.accessUnknown ?? undecided,
    notEvaluated: [
      ...notEvaluated,
      ...done.notEvaluated,
      ...unreadAfterModeChange(draft),
      ...(undecided ? [undecided] : []),
      ...opposed.filter(({ isUndecided }) => isUndecided).map(({ text }) => text),
      ...possiblyRegained(draft),
      ...unknownFacts(draft),
    ],
    unknown: [
      ...steps.filter(leavesObject).map(leftNote),
      ...steps.flatMap((planned) => pendingNote(draft, planned)),
      ...invitedNote(draft),
    ],
  });
  return {
    state,
    managed: managedBy(steps, done.declared),
    duplicates: duplicateDeclarations(draft, done.declared),
    contradictions: opposed.map(({ text }) => text),
    notes: inNewNamespaces.map(newNamespaceNote),
    steps,
    inNewNamespaces,
  };
}

const leavesObject = ({ step, before }: PlannedStep) => losesObject(step) && before?.retained === true;

/**
 * Returns the user ids of key owners from the state. The key of each entry is the owner's declared e-mail address in
 * lower case.
 */
const statedOwners = (steps: readonly PlannedStep[]): ReadonlyMap<string, string> =>
  new Map(
    steps.flatMap(({ before }) => {
      const [owner, ownerId] = [before?.inputs.owner, before?.outputs.ownerId];
      const isKnown =
        typeof owner === "string" && typeof ownerId === "string" && owner !== "" && ownerId !== "";
      return isKnown ? [[owner.toLowerCase(), ownerId] as const] : [];
    }),
  );

function managedBy(steps: readonly PlannedStep[], declared: readonly Declared[]): ManagedObjects {
  const before = steps.flatMap(({ step, definition, before: values }) =>
    values && step.id !== undefined ? [{ ...step, id: step.id, definition, outputs: values.outputs }] : [],
  );
  const after = declared.flatMap(({ planned: { step, definition }, id }) =>
    id === undefined ? [] : [{ urn: step.urn, type: step.type, id, definition }],
  );
  return new ManagedObjects([...before, ...after]);
}

interface Work {
  readonly draft: Draft;
  readonly claims: Claims;
  readonly declared: Declared[];
  readonly notEvaluated: string[];
}

/**
 * Applies steps to a draft: a copy of the namespace. As in a run of the provider, removals come first. An object that
 * moves from one resource to another is not removed.
 */
function carryOut(draft: Draft, steps: readonly PlannedStep[]): Work {
  const work: Work = { draft, claims: new Claims(), declared: [], notEvaluated: [] };
  const stageOf = (planned: PlannedStep) => STAGES.indexOf(kindOf(planned).plan.stage);
  // The steps that change names of tags and devices come first, since other resources refer to the new names.
  for (const isFirst of [true, false]) {
    const some = steps.filter((planned) => (stageOf(planned) === 0) === isFirst);
    carryOutTogether(
      work,
      some.toSorted((left, right) => stageOf(left) - stageOf(right)),
    );
  }
  return work;
}

function carryOutTogether(work: Work, steps: readonly PlannedStep[]): void {
  const { draft, claims } = work;
  const done = steps.filter((planned) => declare(work, planned));
  for (const same of Map.groupBy(done, kindOf)) same[0].plan.together?.(draft, same[1]);
  for (const planned of done) assumeUnread(draft, planned);
  for (const planned of done) {
    const { step, definition, before } = planned;
    if (!before || !removesObject(planned) || (step.id && claims.isHeld(definition, step.id))) continue;
    const { plan } = kindOf(planned);
    if (plan.remove) plan.remove(draft, planned, before, (key) => claims.isHeldAlone(key));
    else draft.remove(definition, keyBefore(planned, before));
  }
  for (const planned of done) attempt(work, planned, () => change(draft, planned));
}

/**
 * Adds the object of a changed resource to the draft, with its values in the state, if the objects of its kind could
 * not be read.
 */
function assumeUnread(draft: Draft, planned: PlannedStep): void {
  const { step, definition, before } = planned;
  if (!before || step.op === "same" || step.op === "import" || !kindOf(planned).reading) return;
  draft.assume(definition, keyBefore(planned, before), { ...before.outputs, ...before.inputs });
}

// If a replacement moves an object to a different namespace, it removes the object in the old namespace and creates it
// in the new namespace.
const removesObject = (planned: PlannedStep) => losesObject(planned.step) && !leavesObject(planned);
const createsObject = ({ step: { op } }: PlannedStep) => op === "create" || op === "replace";

/** Creates or updates the object of a resource. */
function change(draft: Draft, planned: PlannedStep): void {
  const { step, before, after } = planned;
  if (!after) return;
  if (createsObject(planned)) create(draft, planned);
  else if (before && step.op === "update") update(draft, planned, before);
}

function create(draft: Draft, planned: PlannedStep): void {
  const { step, definition } = planned;
  const { plan } = kindOf(planned);
  const inputs = declaredInputs(draft, planned);
  if (plan.create) {
    plan.create(draft, planned, inputs);
    return;
  }
  const key = plan.newKey?.(draft, planned, inputs) ?? draft.newKey(definition, step.name);
  put(draft, planned, inputs, key);
}

function update(draft: Draft, planned: PlannedStep, before: ResourceValues): void {
  const { definition } = planned;
  const { plan } = kindOf(planned);
  const inputs = declaredInputs(draft, planned);
  if (plan.update) {
    plan.update(draft, planned, inputs, before);
    return;
  }
  const key = keyBefore(planned, before);
  // If the service does not enforce the expiry of an object, a run deletes the object after its expiry time.
  const isEnforced = draft.live.facts.enforcesExpiry && draft.of(definition)?.has(key) !== false;
  if (hasEnded(endDeclared(planned), draft.now) && !isEnforced) {
    draft.remove(definition, key);
    return;
  }
  draft.existing(definition, key);
  put(draft, planned, inputs, key);
}

function put(draft: Draft, planned: PlannedStep, inputs: Values, key: string): void {
  const { definition, after } = planned;
  if (!after) return;
  const object = draft.find(definition, key);
  const values = kindOf(planned).plan.values?.(draft, { planned, after, inputs, key, object });
  // If the name of a new object is not known yet, the object gets the name of its resource.
  const name = object || !definition.inputs.name ? {} : { name: nameIn(planned) };
  draft.put(definition, key, { ...object?.state, ...name, ...inputs, ...values });
}

const keyBefore = (planned: PlannedStep, before: ResourceValues): string =>
  kindOf(planned).plan.keyOf(before) || idWithin({ id: planned.step.id ?? "" });

/** Returns the declared expiry time. Returns an empty string for a kind without the input `expiresAt`. */
const endDeclared = ({ definition, after }: PlannedStep): string =>
  definition.inputs.expiresAt && after ? declaredEnd(after) : "";

/**
 * Returns the inputs that the service stores. A server that does not enforce expiry does not store the expiry time.
 */
function declaredInputs(draft: Draft, planned: PlannedStep): Values {
  const inputs = { ...knownInputs(planned), tenant: draft.live.tenant };
  if (!planned.definition.inputs.expiresAt) return inputs;
  const expiresAt = draft.live.facts.enforcesExpiry ? endDeclared(planned) : "";
  return { ...inputs, expiresAt, expiryStatus: expiresAt === "" ? "none" : "enforced" };
}

/**
 * Records the object that a resource will manage. Returns false if this object cannot be predicted. The resource then
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
 * Returns the id, with the tenant, of the object that a resource will manage. Returns undefined if the object does not
 * exist yet.
 * @throws UnpredictableError if the object cannot be predicted
 */
function idOf(draft: Draft, planned: PlannedStep): string | undefined {
  const { step, definition, after, before } = planned;
  const { op } = step;
  if ((op === "update" || op === "delete" || op === "replace") && !before && !after)
    throw new UnpredictableError("the plan contains no values before the change");
  if (!after || op === "same" || op === "import") return step.id;
  const hidden = Object.entries(definition.inputs)
    .filter(([name, { notDecisive }]) => notDecisive === undefined && isHidden(after.inputs[name]))
    .map(([name]) => name);
  if (hidden.length > 0) throw hiddenValues(hidden);
  const inputs = declaredInputs(draft, planned);
  if (isNamespace(definition) || !createsObject(planned)) return step.id;
  const key = kindOf(planned).plan.newKey?.(draft, planned, inputs);
  // If the user id of an invited user is not known, the key of the member is its e-mail address. The id of the member
  // does not contain this key, so the id is taken from the draft.
  return key === undefined ? undefined : (draft.find(definition, key)?.id ?? `${draft.live.tenant}/${key}`);
}

function hold(claims: Claims, { step, definition }: PlannedStep, id: string | undefined): void {
  if (id === undefined) return;
  try {
    claims.hold(definition, step.urn, id);
  } catch (error) {
    // This error is ignored, since `duplicateDeclarations` reports all resources that declare the same object.
    if (!(error instanceof DuplicateDeclarationError)) throw error;
  }
}
