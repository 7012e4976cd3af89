import type { FieldChange, ShownStep } from "../engine/index.ts";
import { definitionOf } from "../estate/liveObjects.ts";
import { topOf } from "../plan/steps.ts";

/**
 * The fields of a resource that somebody changed: those that a program may declare, whether this one does or not, and the
 * name and status of its device. Other fields change by themselves, as when a user accepts an invitation.
 */
export function changedFields({ type, fields }: Pick<ShownStep, "type" | "fields">): FieldChange[] {
  const definition = definitionOf({ type });
  return fields.filter((field) =>
    definition ? topOf(field.path) in definition.inputs || isOfDevice(field) : !field.outputOnly,
  );
}

/** True where nothing changed but the name or the status of the device, which another resource may declare. */
export function isDeviceAlone(step: Pick<ShownStep, "type" | "fields">): boolean {
  const changed = changedFields(step);
  return changed.length > 0 && changed.every(isOfDevice);
}

export function withoutIgnored<S extends Pick<ShownStep, "fields">>(step: S, ignored: readonly string[]): S {
  const isIgnored = (path: string) =>
    ignored.some(
      (one) => one === "*" || path === one || path.startsWith(`${one}.`) || path.startsWith(`${one}[`),
    );
  return ignored.length === 0
    ? step
    : { ...step, fields: step.fields.filter(({ path }) => !isIgnored(path)) };
}

const DEVICE_FIELDS: ReadonlySet<string> = new Set(["deviceName", "deviceStatus"]);

// States of earlier versions do not have the status.
const isOfDevice = ({ path, old }: FieldChange): boolean => DEVICE_FIELDS.has(path) && old !== undefined;
