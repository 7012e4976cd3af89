import { isNotFound } from "@gatehouse-access/sdk";
import type { Plan, ResourceValues, Shown } from "../../engine/index.ts";
import { definitionOf } from "../../estate/liveObjects.ts";
import { readEstate } from "../../estate/namespaceState.ts";
import { plannedEstate } from "../../plan/planned/plannedEstate.ts";
import {
  hasOwnCredential,
  isHidden,
  listed,
  namingNone,
  onService,
  type PlannedStep,
  stepsOf,
  tenantIn,
} from "../../plan/steps.ts";
import type { Connection, Home, TenantClient } from "../../service/connection.ts";
import { deviceKey, isUnreadable, macOf, type Namespace } from "../../service/listings.ts";
import { isNewer } from "../../service/release.ts";
import { byTexts } from "../../words.ts";
import { existingObjects } from "./existingObjects.ts";
import { actorOf, incapabilities } from "./incapabilities.ts";

/** Why a part of a plan cannot be carried out, or would not do what it says. */
export interface PlanProblem {
  readonly about: "namespace" | "rights" | "quota" | "device" | "tag" | "existing" | "order";
  /** A sentence that names the resources and what to do about it. */
  readonly text: string;
}

/**
 * Why a plan cannot be carried out, as far as reading the service can tell: namespaces that are not there, what the
 * credential may not do, quotas, devices and tags that are not there, objects that are there already, and rules of which
 * only the order of their creation decides.
 * @param plan a preview with values
 * @throws RequestError where the service or the credential fails
 */
export async function planProblems(connection: Connection, plan: Plan, home: Home): Promise<PlanProblem[]> {
  const here = onService(plan, connection.client.url).plan;
  const changes: Plan = {
    ...here,
    steps: here.steps.filter((step) => step.op !== "same" && definitionOf(step)),
  };
  if (changes.steps.length === 0) return [];
  const { kind, userId } = await connection.client.identity();
  const problems: PlanProblem[] = [];
  const add = (about: PlanProblem["about"], texts: readonly string[]) =>
    problems.push(...texts.map((text) => ({ about, text })));
  const homeless = home.tenant === undefined ? changes.steps.flatMap(namingNone) : [];
  if (homeless.length > 0) add("namespace", [`${listed(homeless)}: ${home.unsettled?.message}`]);
  add("quota", await tooManyNamespaces(connection, changes, userId));
  add("existing", await existingObjects(connection, changes, home.tenant));
  for (const tenant of tenantsOf(changes, home.tenant)) {
    const { steps, begun } = stepsOf(changes, tenant, home.tenant ?? "");
    const coming = steps.filter(({ after }) => after !== undefined);
    const namespace = await readable(connection, tenant);
    if (typeof namespace === "string") {
      // Objects that the plan deletes are gone together with their namespace.
      const lost = coming.filter(({ step }) => !hasOwnCredential(step)).map(({ title }) => title);
      if (lost.length > 0) add("namespace", [`${listed(lost)}: ${namespace}`]);
      continue;
    }
    const actor = actorOf({ kind, ...(userId !== undefined && { userId }) }, namespace);
    const sure = steps.filter((step) => !mayAdopt(step));
    const beginning = tenant === home.tenant ? begun.filter((step) => !mayAdopt(step)) : [];
    const refused = incapabilities(actor, sure, beginning);
    const titleOf = (name: string) =>
      [...sure, ...beginning].find(({ step }) => step.name === name)?.title ?? name;
    add(
      "rights",
      refused.map(({ resources, reason }) => `${listed(resources.map(titleOf))}: ${reason}`),
    );
    const opened = await connection.tenant(tenant);
    add("device", await missingDevices(opened, coming));
    add("tag", await missingTags(connection, opened, coming));
    add("quota", await fullNamespace(opened, namespace, coming));
    if (await mayContradict(opened, steps)) {
      const planned = plannedEstate(await readEstate(connection, tenant), changes, {
        home: home.tenant ?? "",
      });
      add("order", planned.contradictions);
    }
  }
  return problems.sort(byTexts(({ text }) => text));
}

/** With `adopt` an object that is there and equal is taken over, by no request that could be refused. */
const mayAdopt = ({ step, after }: PlannedStep) => step.op === "create" && Boolean(after?.inputs.adopt);

/** The namespaces that a plan changes, and the one of resources that name none. */
function tenantsOf({ steps }: Plan, home: string | undefined): string[] {
  const named = steps
    .flatMap(({ before, after }) => [before, after])
    .filter((values) => values !== undefined)
    .map(tenantIn)
    .filter((tenant) => typeof tenant === "string" && !isHidden(tenant));
  return [...new Set([...(home === undefined ? [] : [home]), ...(named as string[])])];
}

/** The namespace, or why nothing can be made in it. */
async function readable({ namespaces }: Connection, tenant: string): Promise<Namespace | string> {
  try {
    return (
      (await namespaces.find(tenant)) ??
      `there is no namespace ${tenant}; look at the input tenant, or at GATEHOUSE_TENANT`
    );
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return `the credential is of no member of the namespace ${tenant}; use another one, or name another namespace`;
  }
}

const textsOf = (value: Shown | undefined): string[] =>
  [value].flat().filter((text): text is string => typeof text === "string" && !isHidden(text));

const inputs = ({ after }: PlannedStep): ResourceValues["inputs"] => after?.inputs ?? {};

async function missingDevices(
  { devices, tenant }: TenantClient,
  steps: readonly PlannedStep[],
): Promise<string[]> {
  // Resources may name a device by the name that the plan gives it.
  const given = new Set(steps.filter(isDevice).flatMap((step) => textsOf(inputs(step).name)));
  const selecting = steps.filter(({ step, definition }) => definition.inputs.device && step.op !== "update");
  const sought = selecting.flatMap((step) =>
    textsOf(inputs(step).device).map((selector) => ({ title: step.title, selector: selector.toLowerCase() })),
  );
  const looked = await Promise.all(
    sought
      .filter(({ selector }) => !given.has(selector))
      .map(async (one) => ((await devices.find(deviceKey(one.selector))) ? [] : [one])),
  );
  return looked
    .flat()
    .map(
      ({ title, selector }) =>
        `${title}: the namespace ${tenant} has no device "${selector}"; let it enrol first, or give another uid, MAC address or name`,
    );
}

const isDevice = ({ definition }: PlannedStep) => definition.name === "Device";

async function missingTags(
  connection: Connection,
  { client, tenant }: TenantClient,
  steps: readonly PlannedStep[],
): Promise<string[]> {
  const wanting = steps.flatMap((step) => {
    const { filter } = inputs(step);
    const isTold = typeof filter === "object" && filter !== null && !Array.isArray(filter);
    return isTold ? textsOf(filter.tags).map((tag) => ({ title: step.title, tag })) : [];
  });
  // Newer services list tags in pages, and make a tag in another way.
  if (wanting.length === 0 || (await isOfNewer(connection))) return [];
  const given = steps.flatMap((step) => [...textsOf(inputs(step).tags), ...textsOf(inputs(step).tag)]);
  const renamed = steps
    .filter(({ definition }) => definition.name === "Tag")
    .flatMap((step) => textsOf(inputs(step).name));
  const known = new Set([...(await client.getTags()), ...given, ...renamed]);
  return wanting
    .filter(({ tag }) => !known.has(tag))
    .map(
      ({ title, tag }) =>
        `${title}: nothing in the namespace ${tenant} carries the tag "${tag}"; give it to a device first, or look at its spelling`,
    );
}

/** Namespaces that the plan makes, where their user may own no more. */
async function tooManyNamespaces(
  connection: Connection,
  { steps }: Plan,
  userId: string | undefined,
): Promise<string[]> {
  const { client, namespaces } = connection;
  const made = steps.filter((step) => step.op === "create" && definitionOf(step)?.name === "Namespace");
  if (made.length === 0 || userId === undefined || (await isOfNewer(connection))) return [];
  const { maxNamespaces } = await client.getUserInfo();
  if (!(maxNamespaces >= 0)) return [];
  const owned = (await namespaces.all()).filter(({ owner }) => owner === userId).map(({ name }) => name);
  // A namespace of this name is taken over, or was made by an earlier try.
  const added = made.filter(({ after }) => !textsOf(after?.inputs.name).some((name) => owned.includes(name)));
  if (owned.length + added.length <= maxNamespaces) return [];
  return [
    `${listed(added.map(({ name }) => `Namespace "${name}"`))}: the user may own ${maxNamespaces} namespaces, and owns ${owned.length}; delete one, or have the limit raised`,
  ];
}

/** True where a rule that the plan makes or changes may have the priority of one with the other action. */
async function mayContradict({ rules }: TenantClient, steps: readonly PlannedStep[]): Promise<boolean> {
  const changed = steps
    .filter(({ definition, after }) => definition.name === "FirewallRule" && after !== undefined)
    .map(inputs);
  if (changed.length === 0) return false;
  if (changed.some(({ action, priority }) => isHidden(action) || isHidden(priority))) return true;
  const live = await rules.all().catch((error: unknown) => {
    // Services without a firewall say so with 404.
    if (isNotFound(error)) return [];
    throw error;
  });
  const prioritiesOf = (wanted: string) =>
    new Set<unknown>(
      [...live, ...changed].filter(({ action }) => action === wanted).map(({ priority }) => priority),
    );
  const [allows, denies] = [prioritiesOf("allow"), prioritiesOf("deny")];
  return changed.some(({ action, priority }) => (action === "deny" ? allows : denies).has(priority));
}

async function isOfNewer(connection: Connection): Promise<boolean> {
  const release = await connection.release();
  return release !== undefined && isNewer(release);
}

/** Devices that the plan accepts, where the namespace takes no more. */
async function fullNamespace(
  { devices, tenant }: TenantClient,
  { maxDevices, deviceCount, devicesCount }: Namespace,
  steps: readonly PlannedStep[],
): Promise<string[]> {
  if (!(maxDevices > 0)) return [];
  const accepting = steps.filter((step) => isDevice(step) && inputs(step).status === "accepted");
  const selectors = accepting.flatMap((step) => textsOf(inputs(step).device));
  const found = await Promise.all(
    selectors.map((selector) => devices.find(deviceKey(selector.toLowerCase()))),
  );
  const taken = await Promise.all(found.map((device) => device && devices.find(`mac ${macOf(device)}`)));
  // A device that has enrolled anew takes the place of its former self.
  const added = found.filter(
    (device, index) => device && device.status !== "accepted" && taken[index]?.status !== "accepted",
  ).length;
  const room = maxDevices - (deviceCount ?? devicesCount ?? 0);
  if (added <= room) return [];
  return [
    `${listed(accepting.map(({ title }) => title))}: the namespace ${tenant} has room for ${Math.max(room, 0)} more devices of ${maxDevices}, and ${added} are to be accepted; remove some, or raise the limit`,
  ];
}
