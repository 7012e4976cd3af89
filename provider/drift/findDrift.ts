import type { Declaration } from "@gatehouse-access/sdk/contract";
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
  hasEnded,
  isMeant,
  ManagedObjects,
  type OwnResource,
  shownObject,
  type Unmanaged,
  unmanagedOf,
} from "../estate/coverage.ts";
import { definitionOf, inventoryOf, type LiveObject, WATCHED_KINDS } from "../estate/liveObjects.ts";
import { readEach, readEstate } from "../estate/namespaceState.ts";
import type { Format } from "../import/model.ts";
import { onService } from "../plan/steps.ts";
import { idWithin } from "../resources/values.ts";
import { changedSteps } from "../review/reviewPlan.ts";
import type { Connection, Home } from "../service/connection.ts";
import { acceptanceOf } from "./acceptance.ts";
import { changedFields, isDeviceAlone, withoutIgnored } from "./changedFields.ts";
import { type Drifted, type DriftMeaning, driftMeaning } from "./driftMeaning.ts";
import type { DriftReport, ExpiringKey, Known, UnmanagedMode } from "./driftReport.ts";
import { expiringKeys } from "./expiringKeys.ts";
import type { FirstSeen } from "./KeptFile.ts";
import { valueText } from "./report/sections.ts";
import { nameText, type ObjectName, whoChanged } from "./whoChanged.ts";

/** What drift is looked for in. */
export interface DriftSearch {
  readonly connection: Connection;
  /** The namespace of resources that name none. */
  readonly home: Home;
  /** What the state says, and what the program. */
  readonly stack: Pick<Stack, "drift" | "preview">;
  readonly targets: TargetOptions;
  readonly unmanaged: UnmanagedMode;
  /** The resources of this stack. */
  readonly own: readonly OwnResource[];
  /** Those of other stacks, whose objects are managed too. */
  readonly others: readonly OwnResource[];
  readonly exceptions: readonly Exception[];
  readonly seen: FirstSeen;
  /** What of a plan could not be looked at, as sentences. */
  readonly unseen?: readonly string[];
  /** The language of the program. */
  readonly language: Format;
  /** What new resources of Terraform give as `provider`; left out where they need not give it. */
  readonly provider?: string;
}

/** A report, and what it was made from. */
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
  const acceptance = acceptanceOf(drifted, [], new Date(), { language, steps: result.steps });
  const lists = { unmanaged: [], notApplied: [], namespaces: [], expiring: [], unseen: [], notes: [] };
  const nothing = { ...lists, acceptance };
  const report: DriftReport = { ...result, version: 1, drifted, ...nothing, unmanagedCounts: "ignore" };
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
  await search.seen.save();
  // What a device is called, or whether it is accepted, is drift where it changes who can reach what.
  const drifted = candidates.filter(
    (step) => !isDeviceAlone(step) || knownOf(namespaces, step).meaning.length > 0,
  );
  const movedOn = steps.filter((step) => hasMovedOn(step) || (isDrifted(step) && !drifted.includes(step)));
  const notes = [
    ...elsewhere.unseen,
    ...elsewhere.unknown,
    ...movedOn.flatMap(movedOnNote),
    ...namespaces.flatMap((found) => found.notes),
  ];
  if (isWhole) notes.push(...exceptionNotes(search.exceptions, namespaces));
  const urns = new Set(drifted.map(({ urn }) => urn));
  const open = namespaces.flatMap(({ unmanaged }) => unmanaged.filter(isOpen).map(({ object }) => object));
  const changed = drifted.map((step) => ({ ...shownStep(step), op: step.op, ...knownOf(namespaces, step) }));
  const report: DriftReport = {
    ...result,
    version: 1,
    service: connection.client.url,
    drifted: changed,
    unmanaged: namespaces.flatMap(({ tenant, unmanaged, meaning, originOf }) =>
      unmanaged.map((one) => ({
        ...shownObject(one),
        ...(one.object.declaredBy && { declaredBy: one.object.declaredBy }),
        tenant,
        meaning: meaning.ofObjects.get(one.object) ?? [],
        ...originOf(nameOf(one.object)),
      })),
    ),
    unmanagedCounts: mode,
    notApplied: changedSteps(plan.steps.filter((step) => !urns.has(step.urn) && !isRoot(step))),
    namespaces: namespaces.map(({ meaning }) => meaning.namespace),
    expiring: namespaces.flatMap(({ expiring }) => expiring),
    acceptance: acceptanceOf(changed, open, new Date(), { ...search, steps: preview.steps }),
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

const isWholeRun = ({ targets }: DriftSearch): boolean => (targets.target ?? []).length === 0;

/** The stack itself, which a first run makes. */
const isRoot = ({ type }: Step): boolean => type === "pulumi:pulumi:Stack";

const isDrifted = (step: Step): step is Drifted =>
  step.op === "delete" || (step.op === "update" && step.fields.length > 0 && !hasMovedOn(step));

/** True where the service alone went on, as when somebody accepted an invitation: nothing that a program declares changed. */
const hasMovedOn = (step: Step): boolean =>
  step.op === "update" &&
  step.fields.length > 0 &&
  definitionOf(step) !== undefined &&
  changedFields(step).length === 0;

const movedOnNote = ({ type, name, fields }: Step): string[] => {
  const changes = fields.map(({ path, new: now }) => `${path} is ${valueText(now)} now`);
  if (changes.length === 0) return [];
  return [
    `${typeName(type)} ${name} has moved on by itself: ${changes.join(", ")}; a refresh takes note of it`,
  ];
};

/** The namespaces that the stack has objects in; where it has none yet, its own. */
function namespacesOf(own: readonly OwnResource[], { tenant: home, unsettled }: Home): string[] {
  const found = own.flatMap(({ outputs }) => (typeof outputs?.tenant === "string" ? [outputs.tenant] : []));
  if (found.length === 0 && home === undefined) throw unsettled;
  const tenants = new Set(found.length === 0 && home !== undefined ? [home] : found);
  return [...tenants].sort((left, right) => Number(right === home) - Number(left === home));
}

const isOpen = ({ exception }: Unmanaged) => exception === undefined;

/** What one namespace has of drift. */
interface NamespaceFound {
  readonly tenant: string;
  readonly meaning: DriftMeaning;
  readonly unmanaged: readonly Unmanaged[];
  readonly originOf: (name: ObjectName) => Pick<Known, "by" | "firstSeen">;
  readonly expiring: readonly ExpiringKey[];
  /** The resources that declared the objects of drifted ones last, by id. */
  readonly owners: ReadonlyMap<string, Declaration>;
  readonly notes: readonly string[];
  readonly unseen: readonly string[];
  readonly unread: readonly string[];
}

interface Looking extends DriftSearch {
  readonly plan: Plan;
  readonly drifted: readonly Drifted[];
  readonly managed: ManagedObjects;
  /** True where unmanaged objects are looked for. */
  readonly isWhole: boolean;
}

async function lookAt(looking: Looking, tenant: string): Promise<NamespaceFound> {
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
  const { originOf, notes } = await originsOf(looking, tenant, names);
  return {
    tenant,
    meaning,
    unmanaged,
    originOf,
    owners,
    expiring: isWholeRun(looking)
      ? expiringKeys(estate, [...looking.own, ...looking.others], exceptions)
      : [],
    notes: [...meaning.unknown, ...notes],
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

/** Who declared the objects last that somebody changed. */
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

async function originsOf(
  { connection, seen }: DriftSearch,
  tenant: string,
  names: readonly ObjectName[],
): Promise<Pick<NamespaceFound, "originOf" | "notes">> {
  if (names.length === 0) return { originOf: () => ({}), notes: [] };
  const { client } = await connection.tenant(tenant);
  const { found, notes } = await whoChanged(client, tenant, names);
  const times = found ? undefined : await seen.of(names.map((name) => `${tenant} ${nameText(name)}`));
  const originOf = (name: ObjectName) => {
    const by = found?.get(nameText(name));
    const firstSeen = times?.get(`${tenant} ${nameText(name)}`);
    return { ...(by && { by }), ...(firstSeen !== undefined && { firstSeen }) };
  };
  return { originOf, notes };
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

/** What the namespace of a resource says of it. */
function knownOf(namespaces: readonly NamespaceFound[], step: Drifted): Known {
  const found = namespaces.find(({ tenant }) => tenant === tenantOf(step));
  const name = stepName(step);
  const declaredBy = step.op === "update" ? found?.owners.get(step.id ?? "") : undefined;
  return {
    ...(declaredBy && { declaredBy }),
    meaning: found?.meaning.ofResources.get(step.urn) ?? [],
    ...(name && found?.originOf(name)),
  };
}

/** Exceptions that have ended although something still needs them, and those that nothing needs. */
function exceptionNotes(exceptions: readonly Exception[], namespaces: readonly NamespaceFound[]): string[] {
  const now = new Date();
  const all = namespaces.flatMap(({ unmanaged }) => unmanaged.map(({ object }) => object));
  return exceptions.flatMap((exception) => {
    const isNeeded = all.some((object) => isMeant(exception, object));
    const where = `${EXCEPTIONS_FILE}:${exception.line}`;
    if (!isNeeded) return [`${where}: nothing needs this exception`];
    return hasEnded(exception, now) ? [`${where}: this exception ended with ${exception.until}`] : [];
  });
}
