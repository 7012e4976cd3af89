import { type Identity, RequestError } from "@gatehouse-access/sdk";
import { type Operation, type Role, roleAtLeast, takesWorkload } from "@gatehouse-access/sdk/contract";
import { PromiseCache } from "@gatehouse-access/sdk/promises";
import type { Plan, ResourceValues, Step } from "../../engine/index.ts";
import { existsAlready } from "../../lifecycle/createOrAdopt.ts";
import { diff } from "../../lifecycle/diff.ts";
import { changeConflict } from "../../lifecycle/outOfBand.ts";
import type { Listed, ResourceDefinition } from "../../model/definition.ts";
import {
  firstTitles,
  hasOwnCredential,
  isHidden,
  knownTexts,
  type PlannedStep,
} from "../../model/plannedStep.ts";
import { canonicalInputs } from "../../model/values.ts";
import { declaresNamespace, definitionOf } from "../../namespace/liveObjects.ts";
import type { NamespaceState } from "../../namespace/namespaceState.ts";
import { readNamespace } from "../../namespace/readNamespace.ts";
import { withAdoptedNamespaces } from "../../plan/adoptedNamespaces.ts";
import { applyPlan } from "../../plan/planned/appliedPlan.ts";
import { onService, stepsOf, tenantIn, titleIfUnnamed, topOf } from "../../plan/steps.ts";
import { deviceKey, devices } from "../../resources/deviceSelector.ts";
import { firewallRulesIn } from "../../resources/firewallRule.ts";
import { kindOf, kindsWith } from "../../resources/index.ts";
import type { Member } from "../../resources/member/listing.ts";
import type { Connection, Home, TenantClient } from "../../service/connection.ts";
import { isUnreadable, type Namespace } from "../../service/listings.ts";
import { allOperations, type OperationId } from "../../service/operations.ts";
import { byText, byTexts } from "../../words.ts";

/** A problem that prevents a planned change, or that makes its result differ from the declarations. */
export interface PlanProblem {
  readonly about: "namespace" | "permissions" | "quota" | "device" | "tag" | "existing" | "changed" | "order";
  /** A sentence with the resources, the problem and a remedy. */
  readonly text: string;
}

/**
 * Finds problems of a plan, and reads the service for this purpose. The problems are missing namespaces, devices and
 * tags, missing permissions, exceeded quotas, objects that already exist, and contradictory rules.
 * @param plan a preview with values
 * @throws RequestError if the service or the credential fails
 */
export async function planProblems(connection: Connection, plan: Plan, home: Home): Promise<PlanProblem[]> {
  const local = await withAdoptedNamespaces(connection, onService(plan, connection.client.url).plan);
  const changes = { ...local, steps: local.steps.filter((step) => step.op !== "same" && definitionOf(step)) };
  if (changes.steps.length === 0) return [];
  const { userId } = await connection.client.identity();
  const problems: PlanProblem[] = [];
  const add = (about: PlanProblem["about"], texts: readonly string[]) =>
    problems.push(...texts.map((text) => ({ about, text })));
  const homeless = home.tenant === undefined ? changes.steps.flatMap(titleIfUnnamed) : [];
  if (homeless.length > 0) add("namespace", [`${firstTitles(homeless)}: ${home.unsettled?.message}`]);
  add("quota", await tooManyNamespaces(connection, changes, userId));
  add("existing", await existingObjects(connection, changes, home.tenant));
  const afterPlan = new PromiseCache<string, AppliedPlan>();
  for (const tenant of tenantsOf(changes, home.tenant)) {
    const { steps, inNewNamespaces } = stepsOf(changes, tenant, home.tenant ?? "");
    const coming = steps.filter(({ after }) => after !== undefined);
    const namespace = await readable(connection, tenant);
    if (typeof namespace === "string") {
      // Only resources whose objects exist after the plan need the namespace.
      const lost = coming.filter(({ step }) => !hasOwnCredential(step)).map(({ title }) => title);
      if (lost.length > 0) add("namespace", [`${firstTitles(lost)}: ${namespace}`]);
      continue;
    }
    const actor = actorOf(await connection.client.forTenant(tenant).identity(), namespace);
    const sure = steps.filter((step) => !mayAdopt(step));
    const ofNew = tenant === home.tenant ? inNewNamespaces.filter((step) => !mayAdopt(step)) : [];
    const refused = missingPermissions(actor, sure, ofNew);
    const titleOf = (name: string) =>
      [...sure, ...ofNew].find(({ step }) => step.name === name)?.title ?? name;
    add(
      "permissions",
      refused.map(({ resources, reason }) => `${firstTitles(resources.map(titleOf))}: ${reason}`),
    );
    const opened = await connection.tenant(tenant);
    add("device", await missingDevices(opened, coming));
    add("tag", await missingTags(opened, coming));
    add("changed", await changedOutOfBand(connection, steps));
    const applied = () =>
      afterPlan.get(tenant, async () => {
        const live = await readNamespace(connection, tenant);
        return { live, planned: applyPlan(live, changes, { home: home.tenant ?? "" }) };
      });
    const policies = async () => {
      const { live, planned } = await applied();
      return { before: live.policy, after: planned.state.policy };
    };
    for (const { definition, quota } of kindsWith("quota")) {
      const own = coming.filter((step) => step.definition === definition);
      if (own.length > 0) add("quota", await quota({ opened, namespace, steps: own, policies }));
    }
    if (await mayContradict(connection, tenant, steps))
      add("order", (await applied()).planned.contradictions);
  }
  return problems.sort(byTexts(({ text }) => text));
}

/** The live state of a namespace, and its state after the plan. */
interface AppliedPlan {
  readonly live: NamespaceState;
  readonly planned: ReturnType<typeof applyPlan>;
}

/**
 * Returns true if a step may adopt an existing object because of `adopt`. If the object is identical, the adoption
 * needs no write request.
 */
const mayAdopt = ({ step, after }: PlannedStep) => step.op === "create" && Boolean(after?.inputs.adopt);

function tenantsOf({ steps }: Plan, home: string | undefined): string[] {
  const named = steps
    .flatMap(({ before, after }) => [before, after])
    .flatMap((values) => knownTexts(values && tenantIn(values)));
  return [...new Set([...(home === undefined ? [] : [home]), ...named])];
}

/** Returns the namespace. If the plan cannot use the namespace, returns the reason as a string. */
async function readable({ namespaces }: Connection, tenant: string): Promise<Namespace | string> {
  try {
    return (
      (await namespaces.find(tenant)) ??
      `the namespace ${tenant} does not exist; check the input tenant or GATEHOUSE_TENANT`
    );
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return `the owner of the credential is not a member of the namespace ${tenant}; use another credential or another namespace`;
  }
}

const inputs = ({ after }: PlannedStep): ResourceValues["inputs"] => after?.inputs ?? {};

async function missingDevices({ listing, tenant }: TenantClient, steps: readonly PlannedStep[]) {
  // A resource may select a device by the new name that the plan gives the device.
  const given = new Set(namedBy(steps, "devices"));
  const selecting = steps.filter(({ step, definition }) => definition.inputs.device && step.op !== "update");
  const missing = selecting.flatMap((step) =>
    knownTexts(inputs(step).device).map(async (text) => {
      const selector = text.toLowerCase();
      if (given.has(selector) || (await listing(devices).find(deviceKey(selector)))) return [];
      return [
        `${step.title}: the namespace ${tenant} has no device "${selector}"; enroll the device first, or set another uid, MAC address or name`,
      ];
    }),
  );
  return (await Promise.all(missing)).flat();
}

/** Returns the names that the plan gives to devices or tags. */
const namedBy = (steps: readonly PlannedStep[], names: "devices" | "tags"): string[] =>
  steps.filter((step) => kindOf(step).plan.names === names).flatMap((step) => knownTexts(inputs(step).name));

async function missingTags(
  { client, tenant }: TenantClient,
  steps: readonly PlannedStep[],
): Promise<string[]> {
  const wanting = steps.flatMap((step) => {
    const { filter } = inputs(step);
    const isKnown = typeof filter === "object" && filter !== null && !Array.isArray(filter);
    return isKnown ? knownTexts(filter.tags).map((tag) => ({ title: step.title, tag })) : [];
  });
  if (wanting.length === 0) return [];
  const given = steps
    .filter(({ definition }) => definition.inputs.device)
    .flatMap((step) => [...knownTexts(inputs(step).tags), ...knownTexts(inputs(step).tag)]);
  const known = new Set([...(await client.getTags()), ...given, ...namedBy(steps, "tags")]);
  return wanting
    .filter(({ tag }) => !known.has(tag))
    .map(
      ({ title, tag }) =>
        `${title}: the namespace ${tenant} has no tag "${tag}"; add the tag to a device first, or correct its spelling`,
    );
}

/**
 * Reports updates that would revert the change of another actor, who changed the object after the state was written.
 */
async function changedOutOfBand(connection: Connection, steps: readonly PlannedStep[]): Promise<string[]> {
  const updates = steps.filter((planned) => planned.step.op === "update" && isSent("update", planned));
  const reports = updates.map(async ({ step, definition, before, after, title }) => {
    if (!before || !after || step.id === undefined) return [];
    const hidden = Object.entries(definition.inputs).filter(
      ([name]) => isHidden(before.outputs[name]) || isHidden(after.inputs[name]),
    );
    const inputs = { ...canonicalInputs(definition.inputs, after.inputs) };
    // Values that are secret or not known yet are not in the plan, so they are not compared.
    for (const [name] of hidden) delete inputs[name];
    const change = { definition, id: step.id, state: before.outputs, inputs };
    const error = await whereReadable(() => changeConflict(connection, change));
    return error ? [`${title}: ${error.textIn()}`] : [];
  });
  return (await Promise.all(reports)).flat();
}

/** Reports namespaces that the plan creates in excess of the quota of their owner. */
async function tooManyNamespaces(
  connection: Connection,
  { steps }: Plan,
  userId: string | undefined,
): Promise<string[]> {
  const { client, namespaces } = connection;
  const created = steps.filter((step) => step.op === "create" && declaresNamespace(step));
  if (created.length === 0 || userId === undefined) return [];
  const { maxNamespaces } = await client.getUserInfo();
  if (!(maxNamespaces >= 0)) return [];
  const owned = (await namespaces.all()).filter(({ owner }) => owner === userId).map(({ name }) => name);
  // If the user already owns a namespace with the same name, a Namespace resource needs no additional quota. The run
  // adopts the existing namespace, or an earlier attempt of the run created it.
  const added = created.filter(
    ({ after }) => !knownTexts(after?.inputs.name).some((name) => owned.includes(name)),
  );
  if (owned.length + added.length <= maxNamespaces) return [];
  return [
    `${firstTitles(added.map(({ name }) => `Namespace "${name}"`))}: the quota of the user is ${maxNamespaces} namespaces, and the user owns ${owned.length}; delete a namespace, or ask an operator to raise the quota`,
  ];
}

/** Returns true if an allow rule and a deny rule may have the same priority after the plan. */
async function mayContradict(
  connection: Connection,
  tenant: string,
  steps: readonly PlannedStep[],
): Promise<boolean> {
  const changed = steps
    .filter((step) => kindOf(step).decides?.decision === "rule" && step.after !== undefined)
    .map(inputs);
  if (changed.length === 0) return false;
  if (changed.some(({ action, priority }) => isHidden(action) || isHidden(priority))) return true;
  const live = await firewallRulesIn(connection, tenant);
  const prioritiesOf = (wanted: string) =>
    new Set<unknown>(
      [...live, ...changed].filter(({ action }) => action === wanted).map(({ priority }) => priority),
    );
  const [allows, denies] = [prioritiesOf("allow"), prioritiesOf("deny")];
  return changed.some(({ action, priority }) => (action === "deny" ? allows : denies).has(priority));
}

type Work = "create" | "update" | "delete";

/** The user, API key or workload that applies a plan, with its role in one namespace. */
export interface Actor {
  readonly kind: "user" | "apikey" | "workload";
  readonly role: Role | undefined;
}

/**
 * Returns the user, API key or workload of a credential, with its role in a namespace. The role of an API key is
 * unknown, since the service does not return it.
 * @param identity the identity in this namespace
 */
export function actorOf(
  { kind, userId, workload }: Identity,
  { members }: { readonly members?: readonly Pick<Member, "id" | "role">[] | undefined },
): Actor {
  if (workload) return { kind: "workload", role: workload.role };
  if (kind === "apiKey") return { kind: "apikey", role: undefined };
  return { kind: "user", role: members?.find(({ id }) => id === userId)?.role };
}

/** An operation that a plan requires, but that the credential may not call. */
export interface MissingPermission {
  /** Id of the operation (docs/reference/operations.md). */
  readonly operation: string;
  /** The reason why the permission is missing, as a sentence. */
  readonly reason: string;
  /** Names of the resources that require the operation. */
  readonly resources: readonly string[];
}

/**
 * Returns the operations of a plan that the service will deny according to its API contract. Lists each operation once.
 * @param steps steps in the namespace in which the actor has the role
 * @param inNewNamespaces steps in namespaces that the plan creates: the actor will own these namespaces
 */
export function missingPermissions(
  actor: Actor,
  steps: readonly PlannedStep[],
  inNewNamespaces: readonly PlannedStep[],
): MissingPermission[] {
  const refused = (planned: PlannedStep, who: Actor) =>
    (hasOwnCredential(planned.step) ? [] : neededBy(planned)).flatMap((operation) => {
      const reason = refusal(who, operation);
      return reason === undefined ? [] : [{ operation, reason, resource: planned.step.name }];
    });
  const all = [
    ...steps.flatMap((step) => refused(step, actor)),
    ...inNewNamespaces.flatMap((step) => refused(step, { ...actor, role: undefined })),
  ];
  return [...Map.groupBy(all, ({ operation }) => operation)]
    .map(([operation, some]) => ({
      operation,
      reason: some[0]?.reason ?? "",
      resources: some.map(({ resource }) => resource).sort(byText),
    }))
    .sort(byTexts(({ operation }) => operation));
}

/**
 * Returns the operations that a step requires. If a resource moves to a different namespace, each of the two namespaces
 * has its own step. This function returns only the operations of the given step.
 */
function neededBy(planned: PlannedStep): readonly OperationId[] {
  const { op } = planned.step;
  if (op === "import" || op === "same") return [];
  const work: Work[] = op === "replace" ? ["create", "delete"] : [op];
  return work.filter((one) => isSent(one, planned)).flatMap((one) => kindOf(planned).operations[one]);
}

function isSent(work: Work, planned: PlannedStep): boolean {
  const { step, definition, before, after } = planned;
  if (work === "create") return after !== undefined;
  if (work === "update") return step.fields.some(({ path }) => !definition.inputs[topOf(path)]?.isLocal);
  return before !== undefined && !before.retained && (kindOf(planned).plan.deletesObject?.(before) ?? true);
}

function refusal({ kind, role }: Actor, id: OperationId): string | undefined {
  const operation: Operation = allOperations[id];
  const { auth, minRole } = operation;
  if (kind === "apikey" && !auth.includes("apikey")) {
    return `permission denied: API keys cannot call this operation; use the credential of a user (${id})`;
  }
  if (kind === "workload" && !takesWorkload(operation)) {
    return `permission denied: workloads cannot call this operation; use the credential of a user (${id})`;
  }
  if (minRole !== null && role !== undefined && !roleAtLeast(role, minRole)) {
    return `permission denied: the role ${minRole} is required, and the credential has the role ${role} (${id})`;
  }
  return undefined;
}

/**
 * The maximum number of new objects of a kind that are looked up individually. For more objects, the list of existing
 * objects is requested first.
 */
const FEW = 5;

/**
 * Reports existing objects that the plan would create. Does not report an object that moves from another resource of
 * the program, or that an earlier run created for the same resource.
 * @param home the namespace of resources without a tenant
 */
async function existingObjects(
  connection: Connection,
  { project, stack, steps }: Plan,
  home: string | undefined,
): Promise<string[]> {
  const held = new Set(steps.flatMap(({ before, id }) => (before && id !== undefined ? [id] : [])));
  const groups = Map.groupBy(
    steps.flatMap((step) => newObject(step, home)),
    ({ definition, inputs }) => `${definition.name} ${inputs.tenant}`,
  );
  const problems: string[] = [];
  for (const group of groups.values()) {
    const lists = new PromiseCache<string, readonly Listed[]>();
    const listOnce: ListOnce = ({ list }, tenant) =>
      lists.get(tenant, async () => (await whereReadable(() => list?.(connection, tenant))) ?? []);
    const known = group.length > FEW ? await knownAmong(group, listOnce) : group;
    const reports = known.map(async ({ name, definition, inputs }) => {
      const existing = await whereReadable(() => definition.find?.(connection, inputs));
      if (!existing || held.has(existing.id)) return [];
      const all = await listOnce(definition, existing.id.split("/")[0] ?? "");
      const owner = all.find(({ id }) => id === existing.id)?.declaredBy;
      if (owner?.project === project && owner.stack === stack && owner.resource === name) return [];
      const { message } = existsAlready(
        { definition },
        existing.id,
        diff(definition, existing.state, inputs),
      );
      return [`${definition.name} "${name}": ${message}`];
    });
    problems.push(...(await Promise.all(reports)).flat());
  }
  return problems;
}

interface NewObject {
  readonly name: string;
  readonly definition: ResourceDefinition;
  readonly inputs: Record<string, unknown>;
}

function newObject(step: Step, home: string | undefined): NewObject[] {
  const definition = definitionOf(step);
  const { after } = step;
  if (step.op !== "create" || !after || !definition?.find || !definition.identity) return [];
  const given = after.inputs;
  // Device tags are not checked here. Whether they conflict depends on the plan's other changes to the same device.
  if (given.adopt || definition.inputs.device || definition.overwrites) return [];
  if (definition.identity.fields.some((field) => isHidden(given[field]))) return [];
  const inputs = canonicalInputs(definition.inputs, given);
  if (!definition.inputs.tenant) return [{ name: step.name, definition, inputs }];
  const tenant = tenantIn(after) ?? home;
  // A different check reports a missing namespace.
  if (tenant === undefined || isHidden(tenant)) return [];
  return [{ name: step.name, definition, inputs: { ...inputs, tenant } }];
}

/** A function that lists the objects of a kind in a namespace. It requests each list only once. */
type ListOnce = (definition: ResourceDefinition, tenant: string) => Promise<readonly Listed[]>;

/**
 * Returns the new objects that may already exist, because an existing object has the same identifying fields.
 * @param group new objects of the same kind in the same namespace
 */
async function knownAmong(group: readonly NewObject[], listOnce: ListOnce): Promise<readonly NewObject[]> {
  const [{ definition, inputs: first } = {}] = group;
  // Namespaces have no tenant. All new namespaces are returned, since a program creates only a few.
  if (typeof first?.tenant !== "string" || !definition?.identity) return group;
  const { identity, inputs: fields } = definition;
  const claimsOf = (inputs: Readonly<Record<string, unknown>>) =>
    identity.ofInputs(canonicalInputs(fields, inputs)).map(({ key }) => key);
  const all = await listOnce(definition, first.tenant);
  const claimed = new Set(all.flatMap(({ state }) => claimsOf(state)));
  return group.filter(({ inputs }) => claimsOf(inputs).some((key) => claimed.has(key)));
}

/**
 * Calls `read`. Returns undefined if the credential may not read the object, or if the error is not a RequestError. In
 * both cases, the run fails later, or a different check reports the problem.
 */
async function whereReadable<T>(read: () => Promise<T | undefined> | undefined): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof RequestError && !isUnreadable(error)) throw error;
    return undefined;
  }
}
