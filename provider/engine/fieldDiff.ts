import { PROVIDER_KEY, RESOURCE, SIGNATURE, UNKNOWN } from "../valueMarks.ts";
import type { FieldChange, ResourceValues, Shown } from "./model.ts";
import { equal, isObject, isSecret, type Props, plain, type Value } from "./value.ts";

/** A value as it may be shown: words take the place of secrets and of values that are not known yet. */
export function shown(value: Value): Shown {
  if (value === UNKNOWN) return "[unknown]";
  if (Array.isArray(value)) return value.map(shown);
  if (!isObject(value)) return value;
  if (isSecret(value)) return "[secret]";
  if (value[SIGNATURE] === RESOURCE) return shown(plain(value));
  return shownProps(value);
}

/** All properties as they may be shown; the provider's code is left out. */
export function shownProps(props: Props): Record<string, Shown> {
  const out: Record<string, Shown> = {};
  for (const [key, item] of Object.entries(props)) if (key !== PROVIDER_KEY) out[key] = shown(item);
  return out;
}

/** Inputs and outputs as they may be shown. */
export function shownValues({
  inputs = {},
  outputs = {},
  retainOnDelete = false,
}: {
  inputs?: Props;
  outputs?: Props;
  retainOnDelete?: boolean;
}): ResourceValues {
  const values = { inputs: shownProps(inputs), outputs: shownProps(outputs) };
  return retainOnDelete ? { ...values, retained: true } : values;
}

/**
 * The fields in which two sets of properties differ, in the order of the new one. Objects are compared field by
 * field, arrays as a whole. Secrets are compared by their values and shown masked.
 */
export function fieldDiff(before: Props | undefined, after: Props | undefined, prefix = ""): FieldChange[] {
  const changes: FieldChange[] = [];
  const keys = new Set([...Object.keys(after ?? {}), ...Object.keys(before ?? {})]);
  for (const key of keys) {
    // Classes add such properties for their provider; the program says nothing by them.
    if (key === PROVIDER_KEY || (prefix === "" && key.startsWith("__"))) continue;
    const path = prefix === "" ? key : `${prefix}.${key}`;
    const a = before?.[key];
    const b = after?.[key];
    if (a !== undefined && b !== undefined && equal(plain(a), plain(b))) continue;
    if (isPlainObject(a) && isPlainObject(b)) changes.push(...fieldDiff(a, b, path));
    else
      changes.push({
        path,
        ...(a !== undefined && { old: shown(a) }),
        ...(b !== undefined && { new: shown(b) }),
      });
  }
  return changes;
}

function isPlainObject(value: Value | undefined): value is Props {
  return isObject(value) && value[SIGNATURE] === undefined;
}

/** The inputs that a program gave to an object, and the outputs that its provider answered. */
export interface Known {
  readonly inputs?: Props;
  readonly outputs?: Props;
}

/**
 * What an update changes: inputs that differ from those in the state, and inputs that the last read found to be
 * different on the real object, in the outputs of the same name.
 */
export function changedFields(old: Known | undefined, inputs: Props): FieldChange[] {
  if (!old) return fieldDiff(undefined, inputs);
  const before: Props = { ...old.inputs };
  for (const key of Object.keys(inputs)) {
    const real = old.outputs?.[key];
    const declared = old.inputs?.[key];
    if (real !== undefined && declared !== undefined && !equal(real, declared)) before[key] = real;
  }
  return fieldDiff(before, inputs);
}

/** What a refresh finds different: the inputs that differ, then the outputs of other names. */
export function refreshedFields(old: Known, now: Known): FieldChange[] {
  const fields = fieldDiff(old.inputs, now.inputs);
  const paths = new Set(fields.map((field) => field.path));
  for (const field of fieldDiff(old.outputs, now.outputs)) {
    if (paths.has(field.path)) continue;
    // Many providers read back outputs alone; of a declared property the input has changed then.
    const declared = (field.path.split(".")[0] ?? "") in (old.inputs ?? {});
    fields.push(declared ? field : { ...field, outputOnly: true });
  }
  return fields;
}
