import type { Identity } from "@gatehouse-access/sdk";
import type { Declaration } from "@gatehouse-access/sdk/contract";
import { EngineError } from "../engine/index.ts";
import { type LiveObject, objectText } from "../estate/liveObjects.ts";
import { idWithin } from "../resources/values.ts";
import type { Connection } from "../service/connection.ts";
import { undefinedIfMissing } from "../service/listings.ts";
import { isDeviceAlone } from "./changedFields.ts";
import type { DriftedResource } from "./driftReport.ts";

export interface Repair<T> {
  readonly done: readonly T[];
  readonly left: readonly { readonly item: T; readonly reason: string }[];
}

export interface Repairer {
  readonly identity: Identity;
  readonly project: string;
  readonly stack: string;
  /** Stacks whose objects may be taken from them, as `stack` of the same project or `project/stack`. */
  readonly adoptFrom: readonly string[];
}

/** The unmanaged objects that a repair removes: a run takes no rights from itself, and nothing from other stacks. */
export function removable(objects: readonly LiveObject[], repairer: Repairer): Repair<LiveObject> {
  const { kind, userId } = repairer.identity;
  return sorted(objects, (object) => {
    const { name } = object.definition;
    if (name === "ApiKey" && kind === "apiKey")
      return "it may be the key of this run; run with a user's credential, or revoke it by hand";
    if (name === "Member" && userId !== undefined && idWithin(object) === userId)
      return "it is the user of this run";
    return foreign(object.declaredBy, repairer);
  });
}

/** The resources that a repair makes as the program says. */
export const restorable = (
  drifted: readonly DriftedResource[],
  repairer: Repairer,
): Repair<DriftedResource> =>
  sorted(drifted, (resource) =>
    resource.op === "update" && isDeviceAlone(resource)
      ? "no resource declares the device's name or status: change it by hand, or declare a Device"
      : foreign(resource.declaredBy, repairer),
  );

function sorted<T>(items: readonly T[], reasonOf: (item: T) => string | undefined): Repair<T> {
  const done = items.filter((item) => reasonOf(item) === undefined);
  const left = items.flatMap((item) => {
    const reason = reasonOf(item);
    return reason === undefined ? [] : [{ item, reason }];
  });
  return { done, left };
}

/** Why an object is another stack's; undefined where it is not, or may be taken. */
function foreign(
  owner: Declaration | undefined,
  { project, stack, adoptFrom }: Repairer,
): string | undefined {
  if (!owner || (owner.project === project && owner.stack === stack)) return undefined;
  const whole = `${owner.project}/${owner.stack}`;
  if (adoptFrom.includes(whole) || (owner.project === project && adoptFrom.includes(owner.stack)))
    return undefined;
  return `${owner.resource} of ${whole} declared it last; --adopt-from ${whole} permits it`;
}

/**
 * Removes objects that no program declares. What fails is told at the end; the others are removed all the same.
 * @param tell told after each object
 * @throws EngineError (`repair`) naming what could not be removed
 */
export async function removeObjects(
  connection: Connection,
  objects: readonly LiveObject[],
  tell: (object: LiveObject) => void,
): Promise<void> {
  const failures: { readonly text: string; readonly cause: unknown }[] = [];
  for (const object of objects) {
    const { definition, id, state = {} } = object;
    try {
      await undefinedIfMissing(
        definition.delete(connection, id, state, () => false),
        async () => true,
      );
      tell(object);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      failures.push({ text: `${objectText(object)}: ${why}`, cause });
    }
  }
  if (failures.length > 0) {
    throw new EngineError(
      "repair",
      `not everything could be removed: ${failures.map(({ text }) => text).join("; ")}`,
      { cause: new AggregateError(failures.map(({ cause }) => cause)) },
    );
  }
}
