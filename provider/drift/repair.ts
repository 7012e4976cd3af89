import type { Identity } from "@gatehouse-access/sdk";
import { EngineError } from "../engine/index.ts";
import { idWithin, type LiveObject, objectText } from "../inventory/liveObjects.ts";
import type { Connection } from "../resources/connection.ts";
import { undefinedIfMissing } from "../resources/missingObject.ts";

/** An object that a repair leaves where it is, and why. */
export interface Left {
  readonly object: LiveObject;
  readonly reason: string;
}

/** The unmanaged objects that a repair removes, and those that it leaves: a run takes no rights from itself. */
export function removable(
  objects: readonly LiveObject[],
  { kind, userId }: Identity,
): { readonly removed: readonly LiveObject[]; readonly left: readonly Left[] } {
  const left = objects.flatMap((object): Left[] => {
    const { name } = object.definition;
    if (name === "ApiKey" && kind === "apiKey") {
      return [
        {
          object,
          reason: "it may be the key of this run; run with a user's credential, or revoke it by hand",
        },
      ];
    }
    if (name === "Member" && userId !== undefined && idWithin(object) === userId) {
      return [{ object, reason: "it is the user of this run" }];
    }
    return [];
  });
  return { removed: objects.filter((object) => left.every((one) => one.object !== object)), left };
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
