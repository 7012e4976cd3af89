import type { StateResource } from "../engine/index.ts";
import { ManagedObjects, type OwnResource } from "../estate/coverage.ts";
import {
  type ExpiredObject,
  type ExpiredResource,
  type LiveExpiry,
  liveExpiry,
  shownResource,
  stateExpiry,
} from "../estate/expired.ts";
import { definitionOf, type LiveObject } from "../estate/liveObjects.ts";
import type { Connection } from "../service/connection.ts";
import { isUnreadable } from "../service/listings.ts";
import { urnName } from "../urn.ts";
import { removeObjects } from "./repair.ts";

/** An expired object, as `gatehouse expire` reports it. */
export interface ReportedExpiry extends ExpiredObject {
  /**
   * `enforced`: the service ends the access itself. `by-run`: the object still gives access. `changed`: the object was
   * changed out of band, so the command does not remove the object. `removed`: the command has removed the object.
   */
  readonly status: LiveExpiry["status"];
}

/** Output of `gatehouse expire --json`: the expired objects of a stack that existed at the start of the run. */
export interface ExpireReport {
  /** Version of this format. A breaking change increases the version (docs/reference/json-output.md). */
  readonly version: 1;
  readonly project: string;
  readonly stack: string;
  /** Address of the service. */
  readonly service: string;
  readonly objects: readonly ReportedExpiry[];
  /** Objects that could not be checked, as sentences. */
  readonly notEvaluated: readonly string[];
}

/** The input of {@link findExpired}. */
export interface ExpireSearch {
  readonly connection: Connection;
  /** All resources of the stack. */
  readonly resources: readonly StateResource[];
  /** The resources of the stack that belong to the service. */
  readonly own: readonly OwnResource[];
  /** Resources of other stacks. The command does not remove objects that these resources declare. */
  readonly others: readonly OwnResource[];
}

/** The expired objects of a stack that exist on the service. */
export interface FoundExpired extends Pick<ExpireReport, "objects" | "notEvaluated"> {
  /** The resources whose objects still give access and are as declared, by object. */
  readonly due: ReadonlyMap<LiveObject, ExpiredResource>;
}

/**
 * Finds the expired objects of a stack that exist on the service. Omits objects that another resource declares without an
 * end, or with an end in the future.
 * @throws RequestError if the service fails
 */
export async function findExpired({
  connection,
  resources,
  own,
  others,
}: ExpireSearch): Promise<FoundExpired> {
  const now = new Date();
  const { expired, notEvaluated: unclear } = stateExpiry(own, now);
  const notEvaluated = [...unclear, ...elsewhere(resources, own, now)];
  const urns = new Set(expired.map(({ urn }) => urn));
  const endedElsewhere = new Set(stateExpiry(others, now).expired.map(({ urn }) => urn));
  const lasting = new ManagedObjects([
    ...own.filter(({ urn }) => !urns.has(urn)),
    ...others.filter(({ urn }) => !endedElsewhere.has(urn)),
  ]);
  const objects: ReportedExpiry[] = [];
  const due = new Map<LiveObject, ExpiredResource>();
  for (const resource of expired) {
    const { definition, id, urn, outputs } = resource;
    const object = { definition, id, name: urnName(urn), state: outputs };
    if (lasting.ownerOf(object) !== undefined) continue;
    try {
      const live = await liveExpiry(connection, resource, now);
      if (live.status !== "removed") objects.push(reported(resource, live, now));
      if (live.status === "by-run") due.set({ ...object, state: live.state }, resource);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      notEvaluated.push(`${definition.name} ${object.name} could not be read: ${error.message}`);
    }
  }
  return { objects, due, notEvaluated };
}

function reported(resource: ExpiredResource, live: LiveExpiry, now: Date): ReportedExpiry {
  const { message, ...object } = shownResource(resource, now, live.status);
  const changes = `${live.status === "changed" ? live.fields.join(", ") : ""} changed out of band`;
  const remedy = "check the object, and delete the object manually";
  return {
    ...object,
    status: live.status,
    message: live.status === "changed" ? `${message}; ${changes}; ${remedy}` : message,
  };
}

/** Returns a sentence for each expired resource that belongs to another service. */
function elsewhere(resources: readonly StateResource[], own: readonly OwnResource[], now: Date): string[] {
  const urns = new Set(own.map(({ urn }) => urn));
  const others = resources.flatMap((resource) => {
    const definition = definitionOf(resource);
    return definition && !urns.has(resource.urn) ? [{ ...resource, definition }] : [];
  });
  const { expired, notEvaluated } = stateExpiry(others, now);
  const sentences = expired.map(
    ({ definition, urn }) =>
      `${definition.name} ${urnName(urn)} belongs to another service; set GATEHOUSE_URL to the address of that service`,
  );
  return [...notEvaluated, ...sentences];
}

/**
 * Removes the objects that still give access and are as declared. Reads each object again right before its deletion, and
 * keeps an object that has changed in the meantime.
 * @returns the objects after the removals
 * @throws EngineError (`repair`) with all failures, after the last object
 */
export async function removeExpired(
  search: ExpireSearch,
  found: FoundExpired,
  onRemoved: (object: LiveObject) => void,
): Promise<FoundExpired> {
  const { connection } = search;
  await removeObjects(connection, [...found.due.keys()], {
    what: "expired object",
    onRemoved,
    async isDue(object) {
      const resource = found.due.get(object);
      await connection.forget();
      return (
        resource !== undefined && (await liveExpiry(connection, resource, new Date())).status === "by-run"
      );
    },
  });
  await connection.forget();
  const left = await findExpired(search);
  const urns = new Set(left.objects.map(({ urn }) => urn));
  const removed = [...found.due.values()].filter(({ urn }) => !urns.has(urn));
  const now = new Date();
  const gone = removed.map((resource) => reported(resource, { status: "removed" }, now));
  return { ...left, objects: [...gone, ...left.objects] };
}
