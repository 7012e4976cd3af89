import type { Declaration } from "@gatehouse-access/sdk/contract";
import { expiryOf, SOON_DAYS } from "@gatehouse-access/sdk/policy";
import {
  type Plan,
  type Stack,
  type Step,
  shownStep,
  type TargetOptions,
  typeName,
} from "../engine/index.ts";
import {
  EXCEPTIONS_FILE,
  type Exception,
  exceptionFor,
  hasEnded,
  ManagedObjects,
  matchesException,
  type OwnResource,
  shownObject,
  type Unmanaged,
  unmanagedOf,
} from "../estate/coverage.ts";
import {
  definitionNamed,
  definitionOf,
  inventoryOf,
  type LiveObject,
  WATCHED_KINDS,
} from "../estate/liveObjects.ts";
import { type Estate, readEach, readEstate } from "../estate/namespaceState.ts";
import type { Format } from "../import/model.ts";
import { onService } from "../plan/steps.ts";
import { idWithin } from "../resources/values.ts";
import { changedSteps } from "../review/reviewPlan.ts";
import type { Connection, Home } from "../service/connection.ts";
import { apiKeyIdentity, type KeyIdentity } from "../service/listings.ts";
import type { AcceptingProgram } from "./acceptance.ts";
import { changedFields, isDeviceAlone, withoutIgnored } from "./changedFields.ts";
import { type Drifted, type DriftMeaning, driftMeaning } from "./driftMeaning.ts";
import {
  type Acceptance,
  type DriftedResource,
  type DriftReport,
  type ExpiringKey,
  type Known,
  type UnmanagedMode,
  valueText,
} from "./driftReport.ts";
import { firstSeen, type KeptFile, type SeenTimes } from "./KeptFile.ts";
import { nameText, type ObjectName, type TrailAnswer, whoChanged } from "./whoChanged.ts";

export interface DriftSearch {
  readonly connection: Connection;
  /** The namespace of resources that name none. */
  readonly home: Home;
  readonly stack: Pick<Stack, "drift" | "preview">;
  readonly targets: TargetOptions;
  readonly unmanaged: UnmanagedMode;
  readonly own: readonly OwnResource[];
  /** Those of other stacks, whose objects are managed too. */
  readonly others: readonly OwnResource[];
  readonly exceptions: readonly Exception[];
  /** What runs found first, and when, for services without an audit trail. */
  readonly seen: KeptFile<SeenTimes>;
  readonly unseen?: readonly string[];
  readonly language: Format;
  /** What new resources of Terraform give as `provider`; left out where they need not give it. */
  readonly provider?: string;
}

export interface FoundDrift {
  readonly report: DriftReport;
  /** The stack's own namespace first. */
  readonly meanings: readonly DriftMeaning[];
  /** The objects that no program declares, without those that are excepted. */
  readonly unmanaged: readonly LiveObject[];
  /** What could not be looked into, such as `objects of the kind PublicKey in fleet`; the report says why. */
  readonly unread: readonly string[];
}

/** Compares state and live objects alone, for a program without a service of its own. */
export async function stateDrift(
  stack: Stack,
  { targets, language }: Pick<DriftSearch, "targets" | "language">,
): Promise<FoundDrift> {
  const result = await stack.drift(targets);
  const drifted = result.steps
    .filter(isDrifted)
    .map((step) => ({ ...shownStep(step), op: step.op, meaning: [] }));
  const acceptance = await acceptanceIfAny(drifted, [], { language, steps: result.steps });
  const lists = { unmanaged: [], notApplied: [], namespaces: [], expiring: [], unseen: [], notes: [] };
  const report: DriftReport = {
    ...{ ...result, version: 1, drifted, ...lists, acceptance },
    unmanagedCounts: "ignore",
  };
  return { report, meanings: [], unmanaged: [], unread: [] };
}

/**
 * Compares program, state and live service: what somebody changed or deleted, and what is there but in no stack, in every
 * namespace that the stack has objects in.
 * @throws what previews and refreshes throw; RequestError where the stack's own namespace cannot be read; the reason why
 * there is no namespace where the stack has no objects yet
 */
export async function findDrift(search: DriftSearch): Promise<FoundDrift> {
  const { connection, stack, targets, home, own, unmanaged: mode } = search;
  const result = await stack.drift(targets);
  const preview = await stack.preview({ ...targets, values: true, create: false });
  const { plan, ...elsewhere } = onService(preview, connection.client.url);
  const ignored = new Map(own.map(({ urn, ignoreChanges = [] }) => [urn, ignoreChanges]));
  const steps = result.steps.map((step) => withoutIgnored(step, ignored.get(step.urn) ?? []));
  const candidates = steps.filter(isDrifted);
  // A run about some resources is not about what is beside them.
  const isWhole = mode !== "ignore" && isWholeRun(search);
  const managed = new ManagedObjects([...own, ...search.others]);
  const looking = { ...search, plan, drifted: candidates, managed, isWhole };
  const { found: namespaces, unreadable } = await readEach(namespacesOf(own, home), home.tenant, (tenant) =>
    lookAt(looking, tenant),
  );
  const withoutTrail = namespaces.flatMap(({ tenant, names, changes }) =>
    changes ? [] : names.map((name) => seenName(tenant, name)),
  );
  const seen = withoutTrail.length > 0 ? await firstSeen(search.seen, withoutTrail) : {};
  // What a device is called, or whether it is accepted, is drift where it changes who can reach what.
  const drifted = candidates.filter(
    (step) => !isDeviceAlone(step) || knownOf(namespaces, step, seen).meaning.length > 0,
  );
  const movedOn = steps.filter((step) => hasMovedOn(step) || (isDrifted(step) && !drifted.includes(step)));
  const notes = [
    ...elsewhere.unseen,
    ...elsewhere.unknown,
    ...movedOn.filter(({ fields }) => fields.length > 0).map(movedOnNote),
    ...namespaces.flatMap((found) => found.notes),
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
    unmanaged: namespaces.flatMap((found) =>
      found.unmanaged.map((one) => ({
        ...shownObject(one),
        ...(one.object.declaredBy && { declaredBy: one.object.declaredBy }),
        tenant: found.tenant,
        meaning: found.meaning.ofObjects.get(one.object) ?? [],
        ...originOf(found, nameOf(one.object), seen),
      })),
    ),
    unmanagedCounts: mode,
    notApplied: changedSteps(plan.steps.filter((step) => !urns.has(step.urn) && !isRoot(step))),
    namespaces: namespaces.map(({ meaning }) => meaning.namespace),
    expiring: namespaces.flatMap(({ expiring }) => expiring),
    acceptance: await acceptanceIfAny(changed, open, { ...search, steps: preview.steps }),
    unseen: [
      ...(search.unseen ?? []),
      ...unreadable.values(),
      ...namespaces.flatMap((found) => found.unseen),
    ],
    notes,
  };
  return {
    report,
    meanings: namespaces.map(({ meaning }) => meaning),
    unmanaged: open,
    unread: [
      ...(search.unseen ?? []),
      ...[...unreadable.keys()].map((tenant) => `the namespace ${tenant}`),
      ...namespaces.flatMap((found) => found.unread),
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
  // Loaded here, since most runs find nothing and need none of the writers of programs.
  const { acceptanceOf } = await import("./acceptance.ts");
  return acceptanceOf(drifted, open, new Date(), program);
}

const isWholeRun = ({ targets }: DriftSearch): boolean => (targets.target ?? []).length === 0;

const isRoot = ({ type }: Step): boolean => type === "pulumi:pulumi:Stack";

const isDrifted = (step: Step): step is Drifted =>
  step.op === "delete" || (step.op === "update" && step.fields.length > 0 && !hasMovedOn(step));

/** True where the service alone went on, as when somebody accepted an invitation: nothing that a program declares changed. */
const hasMovedOn = (step: Step): boolean =>
  step.op === "update" &&
  step.fields.length > 0 &&
  definitionOf(step) !== undefined &&
  changedFields(step).length === 0;

function movedOnNote({ type, name, fields }: Step): string {
  const changes = fields.map(({ path, new: now }) => `${path} is ${valueText(now)} now`).join(", ");
  return `${typeName(type)} ${name} has moved on by itself: ${changes}; a refresh takes note of it`;
}

/** The namespaces that the stack has objects in; where it has none yet, its own. */
function namespacesOf(own: readonly OwnResource[], { tenant: home, unsettled }: Home): string[] {
  const found = own.flatMap(({ outputs }) => (typeof outputs?.tenant === "string" ? [outputs.tenant] : []));
  if (found.length === 0 && home === undefined) throw unsettled;
  const tenants = new Set(found.length === 0 && home !== undefined ? [home] : found);
  return [...tenants].sort((left, right) => Number(right === home) - Number(left === home));
}

const isOpen = ({ exception }: Unmanaged) => exception === undefined;

interface Looking extends DriftSearch {
  readonly plan: Plan;
  readonly drifted: readonly Drifted[];
  readonly managed: ManagedObjects;
  readonly isWhole: boolean;
}

type NamespaceFound = Awaited<ReturnType<typeof lookAt>>;

async function lookAt(looking: Looking, tenant: string) {
  const { connection, plan, drifted, managed, exceptions, home, isWhole } = looking;
  const estate = await readEstate(connection, tenant);
  // Of the lists that the estate was made from.
  const inventory = await inventoryOf(connection, tenant, isWhole ? WATCHED_KINDS : []);
  const owners = await ownersOf(connection, tenant, drifted);
  const unmanaged = unmanagedOf(inventory.objects, managed, exceptions);
  const objects = unmanaged.filter(isOpen).map(({ object }) => object);
  const meaning = driftMeaning({ estate, plan, drifted, unmanaged: objects, home: home.tenant ?? "" });
  const names = [
    ...drifted.filter((step) => tenantOf(step) === tenant).flatMap((step) => stepName(step) ?? []),
    ...objects.map(nameOf),
  ];
  const trail = await trailOf(connection, tenant, names);
  const managing = [...looking.own, ...looking.others];
  return {
    ...{ tenant, meaning, unmanaged, owners },
    /** The drifted and unmanaged objects. */
    names,
    /** Who changed them last; undefined without an audit trail. */
    changes: trail.found,
    expiring: isWholeRun(looking) ? expiringKeys(estate, managing, exceptions) : [],
    notes: [...meaning.unknown, ...trail.notes],
    unseen: [
      ...meaning.unseen,
      ...inventory.unknown,
      ...(estate.apiKeys || inventory.unread.includes("ApiKey")
        ? []
        : ["API keys could not be read, so that nobody knows which ones expire"]),
    ],
    unread: [
      ...meaning.unseen,
      ...inventory.unread.map((kind) => `objects of the kind ${kind} in ${meaning.namespace.name}`),
    ],
  };
}

/** The resources that declared the objects of drifted resources last, by id. */
async function ownersOf(
  connection: Connection,
  tenant: string,
  drifted: readonly Drifted[],
): Promise<ReadonlyMap<string, Declaration>> {
  const changed = drifted.filter((step) => step.op === "update" && tenantOf(step) === tenant);
  const kinds = new Set(changed.flatMap((step) => definitionOf(step)?.name ?? []));
  const { objects } = await inventoryOf(connection, tenant, [...kinds]);
  const ids = new Set(changed.map(({ id }) => id));
  return new Map(
    objects.flatMap(({ id, declaredBy }) => (declaredBy && ids.has(id) ? [[id, declaredBy] as const] : [])),
  );
}

async function trailOf(
  connection: Connection,
  tenant: string,
  names: readonly ObjectName[],
): Promise<TrailAnswer> {
  if (names.length === 0) return { found: new Map(), notes: [] };
  const { client } = await connection.tenant(tenant);
  return whoChanged(client, tenant, names);
}

const seenName = (tenant: string, name: ObjectName): string => `${tenant} ${nameText(name)}`;

function originOf(
  { tenant, changes }: NamespaceFound,
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

function knownOf(namespaces: readonly NamespaceFound[], step: Drifted, seen: SeenTimes): Known {
  const found = namespaces.find(({ tenant }) => tenant === tenantOf(step));
  const name = stepName(step);
  const declaredBy = step.op === "update" ? found?.owners.get(step.id ?? "") : undefined;
  return {
    ...(declaredBy && { declaredBy }),
    meaning: found?.meaning.ofResources.get(step.urn) ?? [],
    ...(name && found && originOf(found, name, seen)),
  };
}

/** Exceptions that have ended although something still needs them, and those that nothing needs. */
function exceptionNotes(exceptions: readonly Exception[], namespaces: readonly NamespaceFound[]): string[] {
  const now = new Date();
  const all = namespaces.flatMap(({ unmanaged }) => unmanaged.map(({ object }) => object));
  return exceptions.flatMap((exception) => {
    const isNeeded = all.some((object) => matchesException(exception, object));
    const where = `${EXCEPTIONS_FILE}:${exception.line}`;
    if (!isNeeded) return [`${where}: nothing needs this exception`];
    return hasEnded(exception, now) ? [`${where}: this exception ended with ${exception.until}`] : [];
  });
}

const DAY = 24 * 60 * 60 * 1000;

/**
 * The API keys that have expired or are due. A resource that replaces its key in time has its own date for that.
 * @param managed the resources of this stack and of those beside it
 */
function expiringKeys(
  { tenant, apiKeys = [] }: Pick<Estate, "tenant" | "apiKeys">,
  managed: readonly OwnResource[],
  exceptions: readonly Exception[],
): ExpiringKey[] {
  const now = new Date();
  const definition = definitionNamed("ApiKey");
  const owners = new Map<string, OwnResource>();
  // What a rotation leaves behind ends by itself, and is meant to.
  const replaced = new Set<string>();
  for (const resource of managed) {
    if (resource.definition !== definition || !resource.outputs) continue;
    owners.set(apiKeyIdentity(resource.outputs as unknown as KeyIdentity), resource);
    for (const old of (resource.outputs.previous ?? []) as KeyIdentity[]) replaced.add(apiKeyIdentity(old));
  }
  return apiKeys.flatMap(({ name, role, expiresIn, ...key }): ExpiringKey[] => {
    const identity = apiKeyIdentity(key);
    const ends = expiryOf(expiresIn);
    const owner = owners.get(identity);
    const { rotateBefore } = owner?.inputs ?? {};
    const days = typeof rotateBefore === "number" && rotateBefore > 0 ? rotateBefore : SOON_DAYS;
    if (ends === null || replaced.has(identity) || ends.getTime() - now.getTime() > days * DAY) return [];
    const object = { definition, id: `${tenant}/${name}`, name, state: undefined };
    if (!owner && exceptionFor(exceptions, object, now)) return [];
    const expiresAt = ends.toISOString();
    const what =
      ends <= now
        ? `expired at ${expiresAt}: replace it, or revoke it`
        : `expires at ${expiresAt}: replace it before`;
    return [{ tenant, name, expiresAt, message: `API key ${JSON.stringify(name)} (${role}) ${what}` }];
  });
}
