import { fieldDiff } from "../../fieldDiff.ts";
import type { FieldChange } from "../../model.ts";
import { equal, type Props } from "../../value.ts";

/**
 * What an update changes: inputs that differ from the state's, and those that the last read found to be different
 * on the real object (which shows in the outputs of the same name).
 */
export function changedFields(
  old: { inputs?: Props; outputs?: Props } | undefined,
  inputs: Props,
): FieldChange[] {
  if (!old) return fieldDiff(undefined, inputs);
  const before: Props = { ...old.inputs };
  for (const key of Object.keys(inputs)) {
    const real = old.outputs?.[key];
    const declared = old.inputs?.[key];
    if (real !== undefined && declared !== undefined && !equal(real, declared)) before[key] = real;
  }
  return fieldDiff(before, inputs);
}
