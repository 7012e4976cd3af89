import type { FieldChange, ShownStep } from "../engine/index.ts";
import { definitionOf } from "../inventory/liveObjects.ts";

/**
 * The fields of a resource that somebody changed: those that a program may declare, whether this one does or not. Other
 * fields change by themselves, as when a user accepts an invitation.
 */
export function changedFields({ type, fields }: Pick<ShownStep, "type" | "fields">): FieldChange[] {
  const definition = definitionOf({ type });
  return fields.filter(({ path, outputOnly }) =>
    definition ? (path.split(".", 1)[0] ?? "") in definition.inputs : !outputOnly,
  );
}
