import { RequestError } from "@gatehouse-access/sdk";
import type { Plan, Step } from "../../engine/index.ts";
import { definitionOf } from "../../estate/liveObjects.ts";
import { existsAlready } from "../../lifecycle/createOrAdopt.ts";
import { diff } from "../../lifecycle/diff.ts";
import { isHidden, tenantIn } from "../../plan/steps.ts";
import type { Listed, ResourceDefinition } from "../../resources/definition.ts";
import { canonicalInputs } from "../../resources/values.ts";
import type { Connection } from "../../service/connection.ts";
import { isUnreadable } from "../../service/listings.ts";

/** Up to so many new objects of a kind are looked for one by one; of more, all that there are are listed first. */
const FEW = 5;

/**
 * Objects that the plan is to make, and that are there already. What another resource of the program has today may pass
 * from the one to the other, and what an earlier run made for the same resource is given back by the service.
 * @param home the namespace of resources that name none
 */
export async function existingObjects(
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
    const listed: Lists = new Map();
    const known = group.length > FEW ? await knownAmong(connection, group, listed) : group;
    const looked = known.map(async ({ name, definition, inputs }) => {
      const found = await whereReadable(() => definition.find?.(connection, inputs));
      if (!found || held.has(found.id)) return [];
      const all = await listOnce(connection, definition, found.id.split("/")[0] ?? "", listed);
      const owner = all.find(({ id }) => id === found.id)?.declaredBy;
      if (owner?.project === project && owner.stack === stack && owner.resource === name) return [];
      const { message } = existsAlready({ definition }, found.id, diff(definition, found.state, inputs));
      return [`${definition.name} "${name}": ${message}`];
    });
    problems.push(...(await Promise.all(looked)).flat());
  }
  return problems;
}

/** An object that a plan is to make. */
interface NewObject {
  readonly name: string;
  readonly definition: ResourceDefinition;
  /** In their canonical form, with the namespace. */
  readonly inputs: Record<string, unknown>;
}

function newObject(step: Step, home: string | undefined): NewObject[] {
  const definition = definitionOf(step);
  const { after } = step;
  if (step.op !== "create" || !after || !definition?.find || !definition.identity) return [];
  const given = after.inputs;
  // Whether a tag may be put on a device depends on what else the plan does to its tags.
  if (given.adopt || definition.inputs.device || definition.overwrites) return [];
  if (definition.identity.fields.some((field) => isHidden(given[field]))) return [];
  const inputs = canonicalInputs(definition.inputs, given);
  if (!definition.inputs.tenant) return [{ name: step.name, definition, inputs }];
  const tenant = tenantIn(after) ?? home;
  // Without a namespace that is a problem of its own.
  if (tenant === undefined || isHidden(tenant)) return [];
  return [{ name: step.name, definition, inputs: { ...inputs, tenant } }];
}

type Lists = Map<string, Promise<readonly Listed[]>>;

/** All objects of a kind in a namespace, which are listed once. */
function listOnce(
  connection: Connection,
  { list }: ResourceDefinition,
  tenant: string,
  lists: Lists,
): Promise<readonly Listed[]> {
  const listed =
    lists.get(tenant) ?? whereReadable(() => list?.(connection, tenant)).then((all) => all ?? []);
  lists.set(tenant, listed);
  return listed;
}

/** Those of the new objects of one kind and namespace that claim what an object claims which is there. */
async function knownAmong(
  connection: Connection,
  group: readonly NewObject[],
  lists: Lists,
): Promise<readonly NewObject[]> {
  const [{ definition, inputs: first } = {}] = group;
  // Namespaces are no objects of a namespace, and a program makes few of them.
  if (typeof first?.tenant !== "string" || !definition?.identity) return group;
  const { identity, inputs: fields } = definition;
  const claimsOf = (inputs: Readonly<Record<string, unknown>>) =>
    identity.ofInputs(canonicalInputs(fields, inputs)).map(({ key }) => key);
  const all = await listOnce(connection, definition, first.tenant, lists);
  const claimed = new Set(all.flatMap(({ state }) => (state ? claimsOf(state) : [])));
  return group.filter(({ inputs }) => claimsOf(inputs).some((key) => claimed.has(key)));
}

/** What cannot be looked up is for the run to tell, or a problem of its own. */
async function whereReadable<T>(read: () => Promise<T | undefined> | undefined): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof RequestError && !isUnreadable(error)) throw error;
    return undefined;
  }
}
