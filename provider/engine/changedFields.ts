import { fieldDiff } from "./fieldDiff.ts";
import type { FieldChange } from "./model.ts";
import type { ResourceState } from "./resourceState.ts";
import type { Props } from "./value.ts";

/** What differs in the inputs; where nothing does, what the last read found different from them. */
export function changedFields(old: ResourceState | undefined, inputs: Props): FieldChange[] {
  const fields = fieldDiff(old?.inputs, inputs);
  if (fields.length > 0 || !old) return fields;
  const outputs: Props = {};
  for (const key of Object.keys(inputs)) {
    const value = old.outputs?.[key];
    if (value !== undefined) outputs[key] = value;
  }
  const known = Object.fromEntries(Object.entries(inputs).filter(([key]) => key in outputs));
  return fieldDiff(outputs, known);
}
