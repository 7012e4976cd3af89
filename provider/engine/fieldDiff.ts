import type { FieldChange, ResourceValues, Shown } from "./model.ts";
import {
  equal,
  isObject,
  isSecret,
  PROVIDER_KEY,
  type Props,
  plain,
  RESOURCE,
  SIGNATURE,
  UNKNOWN,
  type Value,
} from "./value.ts";

/** A value as it may be shown: secrets and unknown values are replaced by words. */
export function shown(value: Value): Shown {
  if (value === UNKNOWN) return "[unknown]";
  if (Array.isArray(value)) return value.map(shown);
  if (!isObject(value)) return value;
  if (isSecret(value)) return "[secret]";
  if (value[SIGNATURE] === RESOURCE) return shown(plain(value));
  const out: { [key: string]: Shown } = {};
  for (const [key, item] of Object.entries(value)) if (key !== PROVIDER_KEY) out[key] = shown(item);
  return out;
}

/** All properties as they may be shown; the provider's code is left out. */
export function shownProps(props: Props): Record<string, Shown> {
  return shown(props) as Record<string, Shown>;
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
 * field, arrays as a whole. Secrets are compared by what they hold and shown masked.
 */
export function fieldDiff(before: Props | undefined, after: Props | undefined, prefix = ""): FieldChange[] {
  const changes: FieldChange[] = [];
  const keys = new Set([...Object.keys(after ?? {}), ...Object.keys(before ?? {})]);
  for (const key of keys) {
    // What classes add for their provider is nothing that a program says.
    if (key === PROVIDER_KEY || (prefix === "" && key.startsWith("__"))) continue;
    const path = prefix === "" ? key : `${prefix}.${key}`;
    const a = before?.[key];
    const b = after?.[key];
    if (a !== undefined && b !== undefined && equal(plain(a), plain(b))) continue;
    if (isPlainObject(a) && isPlainObject(b)) {
      changes.push(...fieldDiff(a, b, path));
      continue;
    }
    const change: FieldChange = { path };
    if (a !== undefined) change.old = shown(a);
    if (b !== undefined) change.new = shown(b);
    changes.push(change);
  }
  return changes;
}

function isPlainObject(value: Value | undefined): value is Props {
  return isObject(value) && value[SIGNATURE] === undefined;
}
