import type { FieldChange, ShownStep } from "../engine/index.ts";
import { definitionOf } from "../estate/liveObjects.ts";
import { topOf } from "../plan/steps.ts";

/**
 * The fields of a resource that count as drift: all fields that a program can declare, and the name and status of its
 * device. The service itself changes other fields, for example when a user accepts an invitation.
 */
export function changedFields({ type, fields }: Pick<ShownStep, "type" | "fields">): FieldChange[] {
  const definition = definitionOf({ type });
  return fields.filter((field) =>
    definition ? topOf(field.path) in definition.inputs || isOfDevice(field) : !field.outputOnly,
  );
}

/**
 * True if the only changed fields are the name or status of the resource's device. Another resource may declare this
 * name and status.
 */
export function isOnlyDevice(step: Pick<ShownStep, "type" | "fields">): boolean {
  const changed = changedFields(step);
  return changed.length > 0 && changed.every(isOfDevice);
}

/** Returns a step without the fields that its resource lists in `ignoreChanges`. */
export function withoutIgnored<S extends Pick<ShownStep, "fields">>(step: S, ignored: readonly string[]): S {
  const isIgnored = (path: string) =>
    ignored.some(
      (entry) =>
        entry === "*" || path === entry || path.startsWith(`${entry}.`) || path.startsWith(`${entry}[`),
    );
  return ignored.length === 0
    ? step
    : { ...step, fields: step.fields.filter(({ path }) => !isIgnored(path)) };
}

const DEVICE_FIELDS: ReadonlySet<string> = new Set(["deviceName", "deviceStatus"]);

// States from earlier versions do not contain the device status. The first read of this status is therefore not drift.
const isOfDevice = ({ path, old }: FieldChange): boolean => DEVICE_FIELDS.has(path) && old !== undefined;
