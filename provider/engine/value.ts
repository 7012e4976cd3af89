import { ARCHIVE, ASSET, PROVIDER_KEY, RESOURCE, SECRET, SIGNATURE, UNKNOWN } from "../engineMarks.ts";
import type { FieldChange, ResourceValues, Shown } from "./model.ts";

/** A property's value as programs and providers send it: secrets, references and assets are objects with a signature. */
export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };

export type Props = { [key: string]: Value };

/** True for an object, not for an array or null. */
export function isObject(value: unknown): value is Props {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const isSecret = (value: Value | undefined): boolean => isObject(value) && value[SIGNATURE] === SECRET;

export function secret(value: Value): Value {
  return isSecret(value) ? value : { [SIGNATURE]: SECRET, value };
}

/** True where the value, or anything in it, satisfies the test. */
function some(value: Value | undefined, test: (value: Value) => boolean): boolean {
  if (value === undefined) return false;
  if (test(value)) return true;
  if (Array.isArray(value)) return value.some((item) => some(item, test));
  return isObject(value) && Object.values(value).some((item) => some(item, test));
}

export const containsSecret = (value: Value | undefined): boolean => some(value, isSecret);

/** True where anything in the value is not known yet. */
export const containsUnknown = (value: Value | undefined): boolean => some(value, (item) => item === UNKNOWN);

/** The properties without those that are not known yet. */
export function knownProps(props: Props): Props {
  return Object.fromEntries(Object.entries(props).filter(([, value]) => !containsUnknown(value)));
}

/** True where an asset or archive is anywhere in the value. */
export function containsAsset(value: Value | undefined): boolean {
  return some(value, (item) => isObject(item) && (item[SIGNATURE] === ASSET || item[SIGNATURE] === ARCHIVE));
}

/**
 * The value as a provider gets it: a secret is its bare value, a reference the id of the resource, or its URN for a
 * component. Unknown values stay.
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
 * Makes outputs secret whose inputs of the same key are: providers get secrets in clear and give them back so. In objects
 * that goes for each property; an array becomes secret as a whole where one of its items was.
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

/** Deep equality; the order of keys does not matter. */
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

export function shownValues(state: Known & { readonly retainOnDelete?: boolean }): ResourceValues {
  const { inputs = {}, outputs = {}, retainOnDelete } = state;
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
