import { type Client, NotFoundError, PermissionError } from "@gatehouse-access/sdk";
import { definitions } from "../resources/index.ts";
import { lastChange, noteOf, type TrailNote } from "../service/auditTrail.ts";

/** The name of an object: its kind and its id. */
export interface ObjectName {
  /** Name of the resource type, such as `PublicKey`. */
  readonly kind: string;
  /** Id of the object without the namespace. */
  readonly id: string;
}

/**
 * The last change to each object, according to the audit trail. `notes` contains sentences about missing audit trail
 * entries.
 */
interface TrailChanges {
  /**
   * The last change to each object, by {@link nameText}. Undefined if the service has no audit trail, or if the
   * credential may not read it.
   */
  readonly changes: ReadonlyMap<string, TrailNote> | undefined;
  readonly notes: readonly string[];
}

/** Returns a map key for an object, built from its kind and id. */
export const nameText = ({ kind, id }: ObjectName): string => `${kind} ${id}`;

/**
 * Maximum number of objects whose audit trail entries are requested one by one. For more objects, the audit trail of
 * the namespace is read from the newest entry backwards.
 */
const ONE_BY_ONE_MAX = 40;
/** Maximum number of audit trail entries to read, starting with the newest entry. */
const READ_MAX = 5_000;

const inTrail = new Map(definitions.map(({ name, object }) => [name, object]));

/** Reads the last change to each object from the audit trail of the namespace. */
export async function whoChanged(
  client: Client,
  tenant: string,
  objects: readonly ObjectName[],
): Promise<TrailChanges> {
  const wanted = new Map(objects.map((object) => [nameText(object), trailName(object)]));
  const names = new Map([...wanted.values()].map((name) => [nameText(name), name]));
  try {
    const read = wanted.size <= ONE_BY_ONE_MAX ? readEach : readBack;
    const byTrail = await read(client, tenant, names);
    const changes = new Map(
      [...wanted].flatMap(([name, trail]) => {
        const entry = byTrail.get(nameText(trail));
        return entry ? [[name, entry] as const] : [];
      }),
    );
    const missing = wanted.size - changes.size;
    const notes = missing > 0 ? [`the audit trail has no entry for ${missing} of the objects`] : [];
    return { changes, notes };
  } catch (error) {
    // Services other than Gatehouse have no audit trail.
    if (error instanceof NotFoundError) return { changes: undefined, notes: [] };
    if (!(error instanceof PermissionError)) throw error;
    return { changes: undefined, notes: [`the audit trail could not be read: ${error.message}`] };
  }
}

/**
 * Returns the kind and id that an object has in the audit trail. In the audit trail, all tags of a device are one
 * object.
 */
function trailName({ kind, id }: ObjectName): ObjectName {
  const object = inTrail.get(kind);
  return { kind: object?.kind ?? kind, id: object?.isPart ? id.slice(0, id.indexOf("/")) : id };
}

async function readEach(client: Client, tenant: string, names: ReadonlyMap<string, ObjectName>) {
  const notes = new Map<string, TrailNote>();
  const readOne = async ([name, { kind, id }]: readonly [string, ObjectName]) => {
    const note = await lastChange(client, tenant, { kind, id });
    if (note) notes.set(name, note);
  };
  await Promise.all([...names].map(readOne));
  return notes;
}

async function readBack(client: Client, tenant: string, names: ReadonlyMap<string, ObjectName>) {
  const notes = new Map<string, TrailNote>();
  let read = 0;
  for await (const entry of client.iterate("getAuditTrail", {
    params: { tenant },
    query: { perPage: 100 },
  })) {
    const name = nameText(entry.object);
    if (names.has(name) && !notes.has(name)) notes.set(name, noteOf(entry));
    read += 1;
    if (notes.size === names.size || read === READ_MAX) break;
  }
  return notes;
}
