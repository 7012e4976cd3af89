import type { StateResource } from "../engine/index.ts";
import { sameValue } from "../model/values.ts";
import { ManagedObjects, type OwnResource, ownResources } from "../namespace/coverage.ts";
import { type ExpiredObject, hasEndedOnService, stateExpiry } from "../namespace/expired.ts";
import type { LiveObject } from "../namespace/liveObjects.ts";
import type { Connection } from "../service/connection.ts";
import { isUnreadable } from "../service/listings.ts";
import { removeObjects } from "./repair.ts";

/**
 * Output of `gatehouse expire --json`: the expired objects of a stack that still gave access at the start of the run.
 */
export interface ExpireReport {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  readonly project: string;
  readonly stack: string;
  /** Address of the service. */
  readonly service: string;
  readonly objects: readonly ExpiredObject[];
  /** Objects that could not be checked, as sentences. */
  readonly notEvaluated: readonly string[];
}

/** The input of {@link findExpired}. */
export interface ExpireSearch {
  readonly connection: Connection;
  /** All resources of the stack. */
  readonly resources: readonly StateResource[];
  /** Resources of other stacks. The command does not delete objects that these resources declare. */
  readonly others: readonly OwnResource[];
  /** Parts that the caller could not evaluate, as sentences. */
  readonly notEvaluated?: readonly string[];
}

/** The expired objects of a stack that still give access. */
export interface FoundExpired extends Pick<ExpireReport, "objects" | "notEvaluated"> {
  /** The live objects that the command can delete, because they are unchanged since they were declared. */
  readonly due: readonly LiveObject[];
}

/**
 * Finds the expired objects of a stack that still give access. Omits an object if another resource declares it without
 * an expiry time or with a future expiry time.
 * @throws RequestError if the service fails
 */
export async function findExpired(search: ExpireSearch): Promise<FoundExpired> {
  const { connection, resources, others } = search;
  const own = ownResources(resources, connection.client.url);
  const { expired, notEvaluated: unclear } = stateExpiry(resources);
  const notEvaluated = [...(search.notEvaluated ?? []), ...unclear];
  const urns = new Set(expired.map(({ urn }) => urn));
  const ownUrns = new Set(own.map(({ urn }) => urn));
  const endedElsewhere = new Set(stateExpiry(others).expired.map(({ urn }) => urn));
  const lasting = new ManagedObjects([
    ...own.filter(({ urn }) => !urns.has(urn)),
    ...others.filter(({ urn }) => !endedElsewhere.has(urn)),
  ]);
  const objects: ExpiredObject[] = [];
  const due: LiveObject[] = [];
  for (const { shown, ...resource } of expired) {
    const title = `${shown.kind} ${shown.name}`;
    if (!ownUrns.has(resource.urn)) {
      notEvaluated.push(
        `${title} belongs to another service; set GATEHOUSE_URL to the address of that service`,
      );
      continue;
    }
    if (lasting.ownerOf(resource) !== undefined) continue;
    try {
      const { state, changed } = (await openObject(connection, resource)) ?? {};
      if (!state) continue;
      objects.push({ ...shown, ...(changed ? { status: "changed", changed } : { status: "by-run" }) });
      if (!changed) due.push({ ...resource, state });
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      notEvaluated.push(`${title} could not be read: ${error.message}`);
    }
  }
  return { objects, due, notEvaluated };
}

/**
 * Reads an expired object. Returns its state and the fields that were changed out of band. Returns undefined if the
 * object no longer gives access.
 */
async function openObject(connection: Connection, { definition, id, state: known = {} }: LiveObject) {
  const { state } = (await definition.read(connection, id, known)) ?? {};
  if (!state || state.expiryStatus === "removed" || hasEndedOnService({ state })) return undefined;
  const changed = Object.entries(definition.inputs)
    .filter(([name, field]) => !field.transient && !sameValue(field, known[name], state[name]))
    .map(([name]) => name);
  return { state, changed: changed.length > 0 ? changed : undefined };
}

/**
 * Deletes the expired objects that still match their declarations. Reads each object again immediately before the
 * deletion, and keeps the object if it changed since the first read.
 * @returns the objects after the deletions
 * @throws EngineError (`repair`) with all failures, after the last object
 */
export async function removeExpired(
  search: ExpireSearch,
  found: FoundExpired,
  onRemoved: (object: LiveObject) => void,
): Promise<FoundExpired> {
  const { connection } = search;
  await removeObjects(connection, found.due, onRemoved, async (object) => {
    await connection.forget();
    const open = await openObject(connection, object);
    return open !== undefined && !open.changed;
  });
  await connection.forget();
  const left = await findExpired(search);
  const urns = new Set(left.objects.map(({ urn }) => urn));
  const gone = found.objects
    .filter(({ urn, status }) => status === "by-run" && !urns.has(urn))
    .map((object) => ({ ...object, status: "removed" as const }));
  return { ...left, objects: [...gone, ...left.objects] };
}
