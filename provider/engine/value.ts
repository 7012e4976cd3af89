import { ARCHIVE, ASSET, PROVIDER_KEY, RESOURCE, SECRET, SIGNATURE, UNKNOWN } from "../engineMarks.ts";
import { type FieldChange, holds, type ResourceValues, type Shown } from "./model.ts";

/**
 * A property value that programs and providers exchange. An object with Pulumi's signature key represents a secret, a
 * resource reference or an asset.
 */
export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };

export type Props = { [key: string]: Value };

/** Returns true for an object that is neither an array nor null. */
export function isObject(value: unknown): value is Props {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const isSecret = (value: Value | undefined): boolean => isObject(value) && value[SIGNATURE] === SECRET;

export function secret(value: Value): Value {
  return isSecret(value) ? value : { [SIGNATURE]: SECRET, value };
}

/** Returns true if `test` returns true for the value or for a nested value. */
function some(value: Value | undefined, test: (value: Value) => boolean): boolean {
  if (value === undefined) return false;
  if (test(value)) return true;
  if (Array.isArray(value)) return value.some((item) => some(item, test));
  return isObject(value) && Object.values(value).some((item) => some(item, test));
}

export const containsSecret = (value: Value | undefined): boolean => some(value, isSecret);

/** Returns true if the value is unknown, or contains an unknown value. */
export const containsUnknown = (value: Value | undefined): boolean => some(value, (item) => item === UNKNOWN);

/** Returns the properties without unknown values. */
export function knownProps(props: Props): Props {
  return Object.fromEntries(Object.entries(props).filter(([, value]) => !containsUnknown(value)));
}

/** Returns true if the value is an asset or archive, or contains one. */
export function containsAsset(value: Value | undefined): boolean {
  return some(value, (item) => isObject(item) && (item[SIGNATURE] === ASSET || item[SIGNATURE] === ARCHIVE));
}

/**
 * Returns the value in the form that providers receive. Secrets are in plaintext. A resource reference becomes the id
 * of the resource, or the URN of a component. Unknown values do not change.
 */
export function plain(value: Value): Value {
  if (Array.isArray(value)) return value.map(plain);
  if (!isObject(value)) return value;
  if (isSecret(value)) return plain(value.value ?? null);
  if (value[SIGNATURE] === RESOURCE) {
    if (value.id === undefined) return value.urn ?? null;
    return value.id === "" || value.id === null ? UNKNOWN : value.id;
  }
  return mapProps(value, plain);
}

export function mapProps(props: Props, fn: (value: Value, key: string) => Value): Props {
  const out: Props = {};
  for (const [key, value] of Object.entries(props)) out[key] = fn(value, key);
  return out;
}

export const plainProps = (props: Props): Props => mapProps(props, plain);

/**
 * Marks an output as secret if the input with the same name is secret. This is required because providers receive and
 * return secrets in plaintext. In objects, marks individual properties. If an item of an array is secret, marks the
 * whole array.
 */
export function markSecrets(outs: Props, ins: Props): Props {
  const marked: Props = { ...outs };
  for (const [key, input] of Object.entries(ins)) {
    const out = marked[key];
    if (out === undefined || isSecret(out)) continue;
    if (isObject(out) && isObject(input) && !isSecret(input)) marked[key] = markSecrets(out, input);
    else if (containsSecret(input)) marked[key] = secret(out);
  }
  return marked;
}

export function markNamed(props: Props, names: readonly string[] = []): Props {
  const marked: Props = { ...props };
  for (const name of names) {
    const value = marked[name];
    if (value !== undefined) marked[name] = secret(value);
  }
  return marked;
}

/** Returns true if two values are deeply equal. Ignores the order of keys. */
export function equal(a: Value | undefined, b: Value | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => equal(item, b[i]))
    );
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && equal(a[key], b[key]));
}

export function changedKeys(a: Props, b: Props): string[] {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].filter((key) => !equal(a[key], b[key]));
}

/** Returns a value for display. Replaces secrets with `[secret]` and unknown values with `[unknown]`. */
export function shown(value: Value): Shown {
  if (value === UNKNOWN) return "[unknown]";
  if (Array.isArray(value)) return value.map(shown);
  if (!isObject(value)) return value;
  if (isSecret(value)) return "[secret]";
  if (value[SIGNATURE] === RESOURCE) return shown(plain(value));
  return shownProps(value);
}

/** Returns properties for display. Omits the serialized code of a dynamic provider. */
export function shownProps(props: Props): Record<string, Shown> {
  const out: Record<string, Shown> = {};
  for (const [key, item] of Object.entries(props)) if (key !== PROVIDER_KEY) out[key] = shown(item);
  return out;
}

export function shownValues(
  state: Known & {
    readonly retainOnDelete?: boolean;
    readonly propertyDependencies?: Readonly<Record<string, readonly string[]>>;
    readonly dependencies?: readonly string[];
  },
): ResourceValues {
  const { inputs = {}, outputs = {}, retainOnDelete, propertyDependencies = {}, dependencies = [] } = state;
  const values = { inputs: shownProps(inputs), outputs: shownProps(outputs) };
  const references = Object.entries(propertyDependencies).filter(
    ([name, urns]) => urns.length > 0 && holds(values.inputs[name], "[unknown]"),
  );
  return {
    ...values,
    ...(retainOnDelete && { retained: true as const }),
    ...(references.length > 0 && { references: Object.fromEntries(references) }),
    ...(dependencies.length > 0 && { dependsOn: dependencies }),
  };
}

/**
 * Returns the fields that differ between two sets of properties, in the order of the new set. Compares objects field by
 * field, and arrays as a whole. Compares secrets by value, and masks them in the result.
 */
export function fieldDiff(before: Props | undefined, after: Props | undefined, prefix = ""): FieldChange[] {
  const changes: FieldChange[] = [];
  const keys = new Set([...Object.keys(after ?? {}), ...Object.keys(before ?? {})]);
  for (const key of keys) {
    // Omits the properties that resource classes add for the provider, since the user's program does not set them.
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

/** The known inputs and outputs of an object. The program set the inputs, and the provider returned the outputs. */
export interface Known {
  readonly inputs?: Props;
  readonly outputs?: Props;
}

/**
 * Returns the fields that an update changes: the inputs that differ from the state or from the live object. If an
 * output has the same name as an input, the output contains the live value at the time of the last read.
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

/**
 * Returns the differences that a refresh found: first the changed inputs, and then the changed outputs. If an input and
 * an output with the same name changed, returns only the input.
 */
export function refreshedFields(old: Known, now: Known): FieldChange[] {
  const fields = fieldDiff(old.inputs, now.inputs);
  const paths = new Set(fields.map((field) => field.path));
  for (const field of fieldDiff(old.outputs, now.outputs)) {
    if (paths.has(field.path)) continue;
    // If the program declares an input with the same name, a changed output is treated as a changed input. Many
    // providers return only outputs when they read an object.
    const declared = (field.path.split(".")[0] ?? "") in (old.inputs ?? {});
    fields.push(declared ? field : { ...field, outputOnly: true });
  }
  return fields;
}
