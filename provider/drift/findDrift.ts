import type { Declaration } from "@gatehouse-access/sdk/contract";
import {
  type Plan,
  type Stack,
  type Step,
  shownStep,
  type TargetOptions,
  typeName,
} from "../engine/index.ts";
import type { Format } from "../import/model.ts";
import { idWithin } from "../model/values.ts";
import {
  type Declarer,
  EXCEPTIONS_FILE,
  type Exception,
  endedObjects,
  isExceptionOver,
  ManagedObjects,
  matchesException,
  namespacesUsedBy,
  type OwnResource,
  shownObject,
  type Unmanaged,
  unmanagedOf,
} from "../namespace/coverage.ts";
import { type ExpiredObject, stateExpiry } from "../namespace/expired.ts";
import {
  definitionOf,
  type Inventory,
  inventoryOf,
  type LiveObject,
  watchedIn,
} from "../namespace/liveObjects.ts";
import { readEach, readNamespace } from "../namespace/readNamespace.ts";
import { onService } from "../plan/steps.ts";
import { apiKeysOf } from "../resources/apiKey/index.ts";
import { changedSteps } from "../review/reviewPlan.ts";
import type { Connection, Home } from "../service/connection.ts";
import type { AcceptingProgram } from "./acceptance.ts";
import {
  changedFields,
  isOnlyDevice,
  withoutConversions,
  withoutDeclaredDevice,
  withoutIgnored,
} from "./changedFields.ts";
import { type Drifted, type DriftMeaning, driftMeaning } from "./driftMeaning.ts";
import {
  type Acceptance,
  type DriftedResource,
  type DriftReport,
  type Known,
  type UnmanagedMode,
  valueText,
} from "./driftReport.ts";
import { expiringKeys } from "./expiringKeys.ts";
import { firstSeen, type KeptFile, type SeenTimes } from "./KeptFile.ts";
import { nameText, type ObjectName, whoChanged } from "./whoChanged.ts";

/** The input of {@link findDrift}. */
export interface DriftSearch {
  readonly connection: Connection;
  /** The namespace of resources that do not set a tenant. */
  readonly home: Home;
  readonly stack: Pick<Stack, "drift" | "preview">;
  readonly targets: TargetOptions;
  readonly unmanaged: UnmanagedMode;
  readonly own: readonly OwnResource[];
  /**
   * The stack, for comparisons with the declarations that the service records. Undefined if these declarations do not
   * identify the stack.
   */
  readonly declarer: Declarer | undefined;
  /** Resources of other stacks. Their objects are treated as managed. */
  readonly others: readonly OwnResource[];
  readonly exceptions: readonly Exception[];
  /** File with the times at which `drift` first found objects, for services without an audit trail. */
  readonly seen: KeptFile<SeenTimes>;
  /** Parts that the caller could not evaluate, as sentences. */
  readonly notEvaluated?: readonly string[];
  /** Sentences about facts that limit the search. */
  readonly notes?: readonly string[];
  readonly language: Format;
  /** The `provider` argument of new Terraform resources. Omitted if the resources do not need this argument. */
  readonly provider?: string;
}

/** The report of a run, and the data from which the report was created. */
export interface FoundDrift {
  readonly report: DriftReport;
  /** The effects of drift by namespace. The stack's own namespace comes first. */
  readonly meanings: readonly DriftMeaning[];
  /** The unmanaged objects that have no exception in `access.ignore`. */
  readonly unmanaged: readonly LiveObject[];
  /**
   * The lists and resources that could not be evaluated, such as `objects of the kind PublicKey in fleet`. The report
   * contains the reasons.
   */
  readonly notEvaluated: readonly string[];
}

/** Compares only the state with the live objects. Used if no address of a Gatehouse service is set for the stack. */
export async function stateDrift(
  stack: Stack,
  { targets, language }: Pick<DriftSearch, "targets" | "language">,
): Promise<FoundDrift> {
  const result = await stack.drift(targets);
  const drifted = result.steps
    .filter(isDrifted)
    .map((step) => ({ ...shownStep(step), op: step.op, effects: [] }));
  const acceptance = await acceptanceIfAny(drifted, [], { language, steps: result.steps });
  const lists = {
    unmanaged: [],
    notApplied: [],
    namespaces: [],
    expiring: [],
    expired: [],
    notEvaluated: [],
    notes: [],
  };
  const report: DriftReport = {
    ...result,
    version: 1,
    drifted,
    ...lists,
    acceptance,
    unmanagedMode: "ignore",
  };
  return { report, meanings: [], unmanaged: [], notEvaluated: [] };
}

/**
 * Finds changed, deleted and unmanaged objects in every namespace in which the stack has objects. Compares the program,
 * the state and the live service.
 * @throws the errors of previews and refreshes; RequestError if the stack's own namespace cannot be read;
 *   ConfigurationError if the stack has no objects yet and no namespace is set
 */
export async function findDrift(search: DriftSearch): Promise<FoundDrift> {
  const { connection, stack, targets, home, own, unmanaged: mode } = search;
  const result = await stack.drift(targets);
  const preview = await stack.preview({ ...targets, values: true, create: false });
  const { plan, ...elsewhere } = onService(preview, connection.client.url);
  const stored = new Map(own.map((resource) => [resource.urn, resource]));
  const steps = result.steps.map((step) => {
    const { ignoreChanges = [], outputs } = stored.get(step.urn) ?? {};
    const known = step.op === "update" && outputs ? withoutConversions(step, outputs) : step;
    return withoutDeclaredDevice(withoutIgnored(known, ignoreChanges), outputs, own);
  });
  const { expired, isExpected, notEvaluated } = expiredOf(own, steps);
  const notChecked = [...(search.notEvaluated ?? []), ...notEvaluated];
  const candidates = steps.filter(isDrifted).filter((step) => !isExpected(step));
  // A run with --target does not search for unmanaged objects.
  const isWhole = mode !== "ignore" && isWholeRun(search);
  const managed = new ManagedObjects([...own, ...search.others]);
  const input = { ...search, plan, drifted: candidates, managed, isWhole };
  const { results: namespaces, unreadable } = await readEach(namespacesOf(own, home), home.tenant, (tenant) =>
    searchNamespace(input, tenant),
  );
  const withoutTrail = namespaces.flatMap(({ tenant, names, changes }) =>
    changes ? [] : names.map((name) => seenName(tenant, name)),
  );
  const seen = withoutTrail.length > 0 ? await firstSeen(search.seen, withoutTrail) : {};
  // A changed name or status of a device is drift only if the change affects access.
  const drifted = candidates.filter(
    (step) => !isOnlyDevice(step) || knownOf(namespaces, step, seen).effects.length > 0,
  );
  const changedByService = steps.filter(
    (step) => !isExpected(step) && (isServiceChange(step) || (isDrifted(step) && !drifted.includes(step))),
  );
  const notes = [
    ...(search.notes ?? []),
    ...elsewhere.notEvaluated,
    ...elsewhere.unknown,
    ...changedByService.filter(({ fields }) => fields.length > 0).map(serviceChangeNote),
    ...namespaces.flatMap((namespace) => namespace.notes),
  ];
  if (isWhole) notes.push(...exceptionNotes(search.exceptions, namespaces));
  const urns = new Set(drifted.map(({ urn }) => urn));
  const open = namespaces.flatMap(({ unmanaged }) => unmanaged.filter(isOpen).map(({ object }) => object));
  const changed = drifted.map((step) => {
    return { ...shownStep(step), op: step.op, ...knownOf(namespaces, step, seen) };
  });
  const report: DriftReport = {
    ...result,
    version: 1,
    service: connection.client.url,
    drifted: changed,
    unmanaged: namespaces.flatMap((namespace) =>
      namespace.unmanaged.map(({ object, exception }) => ({
        ...shownObject({ object, exception }, search.declarer),
        ...(object.declaredBy && { declaredBy: object.declaredBy }),
        tenant: namespace.tenant,
        effects: namespace.meaning.ofObjects.get(object) ?? [],
        ...originOf(namespace, nameOf(object), seen),
      })),
    ),
    unmanagedMode: mode,
    notApplied: changedSteps(
      plan.steps.filter((step) => !isRoot(step) && (!urns.has(step.urn) || isDeclaredChange(step))),
    ),
    namespaces: namespaces.map(({ meaning }) => meaning.namespace),
    expiring: namespaces.flatMap(({ expiring }) => expiring),
    expired: [...expired, ...namespaces.flatMap(({ ended }) => ended)],
    acceptance: await acceptanceIfAny(changed, open, { ...search, steps: preview.steps }),
    notEvaluated: [
      ...notChecked,
      ...unreadable.values(),
      ...namespaces.flatMap((namespace) => namespace.notEvaluated),
    ],
    notes,
  };
  return {
    report,
    meanings: namespaces.map(({ meaning }) => meaning),
    unmanaged: open,
    notEvaluated: [
      ...notChecked,
      ...[...unreadable.keys()].map((tenant) => `the namespace ${tenant}`),
      ...namespaces.flatMap((namespace) => namespace.notRead),
    ],
  };
}

async function acceptanceIfAny(
  drifted: readonly DriftedResource[],
  open: readonly LiveObject[],
  program: AcceptingProgram,
): Promise<Acceptance> {
  if (drifted.length === 0 && open.length === 0)
    return { language: program.language, program: "", changes: [], exceptions: [] };
  // Imported here because most runs find no drift and therefore generate no code.
  const { acceptanceOf } = await import("./acceptance.ts");
  return acceptanceOf(drifted, open, new Date(), program);
}

const isWholeRun = ({ targets }: DriftSearch): boolean => (targets.target ?? []).length === 0;

const isRoot = ({ type }: Step): boolean => type === "pulumi:pulumi:Stack";

const isDrifted = (step: Step): step is Drifted =>
  step.op === "delete" || (step.op === "update" && step.fields.length > 0 && !isServiceChange(step));

/**
 * Returns true if the program changes the resource: its declaration differs from the state. Returns false if the step
 * only claims the object, which moved from another resource or stack.
 */
const isDeclaredChange = (step: Step): boolean => step.op !== "update" || changedFields(step).length > 0;

/**
 * Returns true if the object changed only in fields that no program can declare, for example after a user accepted an
 * invitation.
 */
const isServiceChange = (step: Step): boolean =>
  step.op === "update" &&
  step.fields.length > 0 &&
  definitionOf(step) !== undefined &&
  changedFields(step).length === 0;

/**
 * Returns the expired resources of the stack. A resource is not treated as expired if its live object has a different
 * expiry time. `isExpected` returns true for a step that follows from the expiry: the object was removed, or only its
 * status changed. Other changes to the object are drift.
 */
function expiredOf(own: readonly OwnResource[], steps: readonly Step[]) {
  const { expired, notEvaluated } = stateExpiry(own);
  const stepOf = new Map(steps.map((step) => [step.urn, step]));
  const ended = expired.flatMap(({ urn, shown }): ExpiredObject[] => {
    const { op, fields = [] } = stepOf.get(urn) ?? {};
    if (op === "delete") return [{ ...shown, status: "removed" }];
    if (fields.some(({ path }) => path === "expiresAt")) return [];
    const status = fields.find(({ path }) => path === "expiryStatus")?.new ?? shown.status;
    return [{ ...shown, status: status as ExpiredObject["status"] }];
  });
  const urns = new Set(ended.map(({ urn }) => urn));
  return {
    expired: ended,
    isExpected: (step: Step) => urns.has(step.urn) && (step.op === "delete" || isServiceChange(step)),
    notEvaluated,
  };
}

function serviceChangeNote({ type, name, fields }: Step): string {
  const changes = fields.map(({ path, new: now }) => `${path} is ${valueText(now)} now`).join(", ");
  return `${typeName(type)} ${name} was changed by the service: ${changes}; refresh to update the state`;
}

/**
 * Returns the namespaces of the stack's objects. Returns the stack's own namespace if the stack has no objects yet.
 */
function namespacesOf(own: readonly OwnResource[], { tenant: home, unsettled }: Home): string[] {
  const used = [...namespacesUsedBy(own).keys()];
  if (used.length === 0 && home === undefined) throw unsettled;
  const tenants = new Set(used.length === 0 && home !== undefined ? [home] : used);
  return [...tenants].sort((left, right) => Number(right === home) - Number(left === home));
}

const isOpen = ({ exception }: Unmanaged) => exception === undefined;

interface NamespaceSearch extends DriftSearch {
  readonly plan: Plan;
  readonly drifted: readonly Drifted[];
  readonly managed: ManagedObjects;
  readonly isWhole: boolean;
}

/** The empty inventory of a run that does not search for unmanaged objects. */
const NOTHING: Inventory = { objects: [], unknown: [], unread: [] };

type NamespaceFindings = Awaited<ReturnType<typeof searchNamespace>>;

async function searchNamespace(search: NamespaceSearch, tenant: string) {
  const { connection, plan, drifted, managed, exceptions, home, isWhole } = search;
  const live = await readNamespace(connection, tenant);
  const inventory = isWhole ? watchedIn(live) : NOTHING;
  const owners = await ownersOf(connection, tenant, drifted);
  const unmanaged = unmanagedOf(inventory.objects, managed, exceptions);
  const objects = unmanaged.filter(isOpen).map(({ object }) => object);
  const meaning = driftMeaning({ live, plan, drifted, unmanaged: objects, home: home.tenant ?? "" });
  const names = [
    ...drifted.filter((step) => tenantOf(step) === tenant).flatMap((step) => stepName(step) ?? []),
    ...objects.map(nameOf),
  ];
  const { client } = await connection.tenant(tenant);
  const trail = await whoChanged(client, tenant, names);
  const managing = [...search.own, ...search.others];
  return {
    tenant,
    meaning,
    unmanaged,
    owners,
    ended: endedObjects(inventory.objects, managed),
    /** Kind and id of each drifted or unmanaged object. */
    names,
    /**
     * The last change to each drifted or unmanaged object. Undefined if the service has no audit trail, or if the
     * credential may not read it.
     */
    changes: trail.changes,
    expiring: isWholeRun(search) ? expiringKeys(live, managing, exceptions) : [],
    notes: [...meaning.unknown, ...trail.notes],
    notEvaluated: [
      ...meaning.notEvaluated,
      ...inventory.unknown,
      ...(apiKeysOf(live) || isWhole
        ? []
        : ["API keys could not be read; expired and expiring API keys cannot be reported"]),
    ],
    notRead: [
      ...meaning.notEvaluated,
      ...inventory.unread.map((kind) => `objects of the kind ${kind} in ${meaning.namespace.name}`),
    ],
  };
}

/** Returns a map from the id of each drifted object to the resource that was the last to declare it. */
async function ownersOf(
  connection: Connection,
  tenant: string,
  drifted: readonly Drifted[],
): Promise<ReadonlyMap<string, Declaration>> {
  const changed = drifted.filter((step) => step.op === "update" && tenantOf(step) === tenant);
  const { objects } = await inventoryOf(
    connection,
    tenant,
    changed.flatMap((step) => definitionOf(step) ?? []),
  );
  const ids = new Set(changed.map(({ id }) => id));
  return new Map(
    objects.flatMap(({ id, declaredBy }) => (declaredBy && ids.has(id) ? [[id, declaredBy] as const] : [])),
  );
}

const seenName = (tenant: string, name: ObjectName): string => `${tenant} ${nameText(name)}`;

function originOf(
  { tenant, changes }: NamespaceFindings,
  name: ObjectName,
  seen: SeenTimes,
): Pick<Known, "by" | "firstSeen"> {
  const by = changes?.get(nameText(name));
  const since = changes ? undefined : seen[seenName(tenant, name)];
  return { ...(by && { by }), ...(since !== undefined && { firstSeen: since }) };
}

const tenantOf = ({ id = "" }: Step): string => id.split("/", 1)[0] ?? "";

const nameOf = ({ definition, id }: Pick<LiveObject, "definition" | "id">): ObjectName => ({
  kind: definition.name,
  id: idWithin({ id }),
});

function stepName(step: Step): ObjectName | undefined {
  const definition = definitionOf(step);
  return definition && step.id !== undefined ? nameOf({ definition, id: step.id }) : undefined;
}

function knownOf(namespaces: readonly NamespaceFindings[], step: Drifted, seen: SeenTimes): Known {
  const namespace = namespaces.find(({ tenant }) => tenant === tenantOf(step));
  const name = stepName(step);
  const declaredBy = step.op === "update" ? namespace?.owners.get(step.id ?? "") : undefined;
  return {
    ...(declaredBy && { declaredBy }),
    effects: namespace?.meaning.ofResources.get(step.urn) ?? [],
    ...(name && namespace && originOf(namespace, name, seen)),
  };
}

/**
 * Returns notes about outdated exceptions in `access.ignore`: exceptions that match no object, and expired exceptions
 * that still match an object.
 */
function exceptionNotes(
  exceptions: readonly Exception[],
  namespaces: readonly NamespaceFindings[],
): string[] {
  const now = new Date();
  const all = namespaces.flatMap(({ unmanaged }) => unmanaged.map(({ object }) => object));
  return exceptions.flatMap((exception) => {
    const isNeeded = all.some((object) => matchesException(exception, object));
    const where = `${EXCEPTIONS_FILE}:${exception.line}`;
    if (!isNeeded) return [`${where}: this exception matches no unmanaged object; remove the exception`];
    return isExceptionOver(exception, now)
      ? [`${where}: this exception ended on ${exception.until}; renew or remove the exception`]
      : [];
  });
}
