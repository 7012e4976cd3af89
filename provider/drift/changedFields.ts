import type { FieldChange, ShownStep } from "../engine/index.ts";
import { currentState } from "../model/definition.ts";
import { sameValue } from "../model/values.ts";
import type { OwnResource } from "../namespace/coverage.ts";
import { definitionOf } from "../namespace/liveObjects.ts";
import { topOf } from "../plan/steps.ts";
import { device } from "../resources/device.ts";

/**
 * Returns the changed fields of a resource that are treated as drift: all fields that a program can declare, and the
 * name and status of the resource's device. Other fields are omitted, because the service itself changes them, for
 * example when a user accepts an invitation.
 */
export function changedFields({ type, fields }: Pick<ShownStep, "type" | "fields">): FieldChange[] {
  const definition = definitionOf({ type });
  return fields.filter((field) =>
    definition ? topOf(field.path) in definition.inputs || isOfDevice(field) : !field.outputOnly,
  );
}

/**
 * Returns true if the only changed fields are the name or status of the resource's device. A different resource may
 * declare this name or status.
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

// States that earlier versions wrote do not contain the device status, so the first read of the status is not drift.
const isOfDevice = ({ path, old }: FieldChange): boolean => DEVICE_FIELDS.has(path) && old !== undefined;

/**
 * Returns a step without the device changes that the stack itself made. The stack made such a change if the state of
 * its Device resource has the new name or status. The other resources of the device may still have the old name or
 * status in the state.
 * @param outputs the outputs of the resource in the state
 * @param own all resources of the stack
 */
export function withoutDeclaredDevice<S extends Pick<ShownStep, "fields">>(
  step: S,
  outputs: Readonly<Record<string, unknown>> = {},
  own: readonly OwnResource[],
): S {
  const declared = own.find(
    ({ definition, outputs: values }) => definition === device.definition && values?.uid === outputs.uid,
  )?.outputs;
  if (!declared) return step;
  const isDeclared = ({ path, new: now }: FieldChange) =>
    (path === "deviceName" && now === declared.name) || (path === "deviceStatus" && now === declared.status);
  return { ...step, fields: step.fields.filter((field) => !isDeclared(field)) };
}

/**
 * Returns a step without the changes that only convert a state that an earlier version wrote. In such a change, an
 * input has its default on the service, or an output is missing in the state.
 * @param outputs the outputs in the state
 */
export function withoutConversions<S extends Pick<ShownStep, "type" | "fields">>(
  step: S,
  outputs: Readonly<Record<string, unknown>> = {},
): S {
  const definition = definitionOf(step);
  if (!definition) return step;
  const converted = currentState(definition, outputs);
  const isConversion = ({ path, old, new: now }: FieldChange) => {
    const isOld = converted !== outputs;
    // The values are not compared here, because two different secret values are shown as the same mark.
    if (!isOld && old !== undefined) return false;
    const before = isOld ? converted[path] : undefined;
    const field = definition.inputs[path];
    return field ? sameValue(field, before, now) : path in definition.outputs && before === undefined;
  };
  return { ...step, fields: step.fields.filter((field) => !isConversion(field)) };
}
