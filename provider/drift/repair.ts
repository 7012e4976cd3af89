import type { Identity } from "@gatehouse-access/sdk";
import type { Declaration } from "@gatehouse-access/sdk/contract";
import { EngineError } from "../engine/index.ts";
import { objectId } from "../lifecycle/outOfBand.ts";
import { type LiveObject, objectText } from "../namespace/liveObjects.ts";
import { kindOf } from "../resources/index.ts";
import { changeThat, isSameStack } from "../service/auditTrail.ts";
import type { Connection } from "../service/connection.ts";
import { counted } from "../words.ts";
import { isOnlyDevice } from "./changedFields.ts";
import type { DriftedResource, DriftReport } from "./driftReport.ts";

/**
 * The result of selecting findings for a repair: `done` contains the findings that the repair reverts. `left` contains
 * the findings that it skips, each with a reason.
 */
export interface Repair<T> {
  readonly done: readonly T[];
  readonly left: readonly { readonly item: T; readonly reason: string }[];
}

/** The identity that runs a repair, and the stack whose drift the repair reverts. */
export interface Repairer {
  readonly identity: Identity;
  readonly project: string;
  readonly stack: string;
  /** The names of the stack's resources in the state. */
  readonly resources: ReadonlySet<string>;
  /**
   * The other stacks whose objects the repair may change. A stack is given as `project/stack`, or as `stack` if it is
   * in the same project.
   */
  readonly adoptFrom: readonly string[];
  /** True to delete objects that this stack declared earlier but no longer declares. */
  readonly deletesForgotten: boolean;
  /** The ids of the namespaces that may deny every login after their unmanaged access policies are deleted. */
  readonly closed: ReadonlySet<string>;
}

/** An unmanaged object, with its last declaration. */
export interface Removal {
  readonly object: LiveObject;
  /** The resource that was the last to declare the object. Undefined for an object that no program declared. */
  readonly declaredBy: Declaration | undefined;
}

/**
 * Returns the unmanaged objects that a repair deletes. A repair skips API keys that the run may use, the user who runs
 * the command, the last access policies, and objects of other stacks. It also skips objects that this stack declared
 * earlier, because they may have moved to another stack.
 */
export function removable(removals: readonly Removal[], repairer: Repairer): Repair<LiveObject> {
  const { kind: credential, userId, workloadId } = repairer.identity;
  const { done, left } = sorted(removals, ({ object, declaredBy }) => {
    const isClosed = repairer.closed.has(object.id.split("/", 1)[0] ?? "");
    const kept = kindOf(object).watched?.keptBy?.(object, { credential, userId, workloadId, isClosed });
    if (kept !== undefined) return kept;
    const declarer = declaredBy ?? claimant(object, repairer);
    if (declarer && isSameStack(declarer, repairer) && !repairer.deletesForgotten)
      return "this stack declared the object earlier, and it may have moved to another stack; delete it with --delete-forgotten";
    return foreign(declarer, repairer) ?? foreign(object.declaredBy, repairer);
  });
  return {
    done: done.map(({ object }) => object),
    left: left.map(({ item, reason }) => ({ item: item.object, reason })),
  };
}

/**
 * Returns the resource that may have claimed a part of an object, such as a tag of a device. A claim of a part leaves
 * no entry in the audit trail, so returns the last resource that declared the whole object, such as all tags of the
 * device. Returns undefined if the state of this stack contains this resource, because another actor then added the
 * part.
 */
function claimant({ declaredBy }: LiveObject, repairer: Repairer): Declaration | undefined {
  const isManaged =
    declaredBy && isSameStack(declaredBy, repairer) && repairer.resources.has(declaredBy.resource);
  return isManaged ? undefined : declaredBy;
}

/**
 * Finds the last declaration of each unmanaged object. An object can be a part of another object, such as a tag of a
 * device. The declaration of the other object does not identify the part, so the function then reads the audit trail.
 * @returns the objects with their declarations, and the objects whose declaration the service does not record
 */
export async function declarationsOf(
  connection: Connection,
  objects: readonly LiveObject[],
): Promise<{ readonly known: readonly Removal[]; readonly unknown: readonly LiveObject[] }> {
  const known: Removal[] = [];
  const unknown: LiveObject[] = [];
  for (const object of objects) {
    const { definition, id, declaredBy } = object;
    const [tenant = ""] = id.split("/", 1);
    const isRecorded = (await connection.server(tenant)).isOwn === true;
    const { object: whole } = definition;
    if (!isRecorded || !whole) unknown.push(object);
    else if (!whole.isPart) known.push({ object, declaredBy });
    else {
      const { client } = await connection.tenant(tenant);
      const name = { kind: whole.kind, id: objectId(definition, { id, state: object.state }) };
      const added = await changeThat(client, tenant, name, (entry) => whole.isPart?.(id, entry) ?? false);
      // The audit trail may no longer contain the entry, so it is not known whether this stack added the object.
      if (added === undefined) unknown.push(object);
      else known.push({ object, declaredBy: added.declaredBy });
    }
  }
  return { known, unknown };
}

/**
 * Returns the drifted resources that a repair reverts to their declarations. A repair skips a resource that the program
 * also changes, since the report shows the values in the state instead of the new values in the program.
 */
export function restorable(
  { drifted, notApplied }: Pick<DriftReport, "drifted" | "notApplied">,
  repairer: Repairer,
): Repair<DriftedResource> {
  const changed = new Set(notApplied.map(({ urn }) => urn));
  return sorted(drifted, (resource) => {
    if (resource.op === "update" && isOnlyDevice(resource))
      return "no resource declares the device's name or status; change the device manually, or declare a Device";
    if (changed.has(resource.urn))
      return "the program declares another change of this resource, and a repair applies no changes of the program; run gatehouse up --refresh";
    return foreign(resource.declaredBy, repairer);
  });
}

function sorted<T>(items: readonly T[], reasonOf: (item: T) => string | undefined): Repair<T> {
  const done = items.filter((item) => reasonOf(item) === undefined);
  const left = items.flatMap((item) => {
    const reason = reasonOf(item);
    return reason === undefined ? [] : [{ item, reason }];
  });
  return { done, left };
}

/**
 * Returns the reason if a repair must skip an object because another stack declared it last. Returns undefined if the
 * repair may change the object.
 */
function foreign(owner: Declaration | undefined, repairer: Repairer): string | undefined {
  if (!owner || isSameStack(owner, repairer)) return undefined;
  const { project, adoptFrom } = repairer;
  const whole = `${owner.project}/${owner.stack}`;
  if (adoptFrom.includes(whole) || (owner.project === project && adoptFrom.includes(owner.stack)))
    return undefined;
  return `${owner.resource} of ${whole} declared this object last; allow the change with --adopt-from ${whole}`;
}

/**
 * Deletes objects. If a deletion fails, the function still deletes the remaining objects.
 * @param isDue called immediately before each deletion. If it returns false, the object is not deleted.
 * @throws EngineError (`repair`) with all failures, after the last object
 */
export async function removeObjects(
  connection: Connection,
  objects: readonly LiveObject[],
  onRemoved: (object: LiveObject) => void,
  isDue: (object: LiveObject) => Promise<boolean> = async () => true,
): Promise<void> {
  const failures: { readonly text: string; readonly cause: unknown }[] = [];
  for (const object of objects) {
    const { definition, id, state } = object;
    try {
      if (!(await isDue(object))) continue;
      await definition.delete(connection, id, state, () => false);
      onRemoved(object);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      failures.push({ text: `${objectText(object)}: ${why}`, cause });
    }
  }
  if (failures.length > 0) {
    throw new EngineError(
      "repair",
      `Cannot delete ${counted(failures.length, "object")}: ${failures.map(({ text }) => text).join("; ")}`,
      { cause: new AggregateError(failures.map(({ cause }) => cause)) },
    );
  }
}
