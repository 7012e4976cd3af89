/** A property value as it travels: secrets, references and assets are objects with a signature key. */
export type Value = null | boolean | number | string | Value[] | { [key: string]: Value };

/** The properties of a resource. */
export type Props = { [key: string]: Value };

/** The key under which special objects carry their signature. */
export const SIGNATURE = "4dabf18193072939515e22adb298388d";
/** Signature of a secret. */
export const SECRET = "1b47061264138c4ac30d75fd1eb44270";
/** Signature of a reference to a resource. */
export const RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e";
/** Signatures of assets and archives. */
export const ASSET = "c44067f5952c0a294b673a41bacd8c17";
export const ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7";
/** The text that stands for a value which is not known yet. */
export const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
/** The property that holds a dynamic provider's code. */
export const PROVIDER_KEY = "__provider";

type Obj = { [key: string]: Value };

/** True for a plain or signed object, not for an array or null. */
export function isObject(value: Value | undefined): value is Obj {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** True for a secret. */
export function isSecret(value: Value | undefined): boolean {
  return isObject(value) && value[SIGNATURE] === SECRET;
}

/** Makes a value secret; a secret stays as it is. */
export function secret(value: Value): Value {
  return isSecret(value) ? value : { [SIGNATURE]: SECRET, value };
}

/** True where the value, or anything in it, satisfies the test. */
export function some(value: Value | undefined, test: (value: Value) => boolean): boolean {
  if (value === undefined) return false;
  if (test(value)) return true;
  if (Array.isArray(value)) return value.some((item) => some(item, test));
  return isObject(value) && Object.values(value).some((item) => some(item, test));
}

/** True where a secret is anywhere in the value. */
export function containsSecret(value: Value | undefined): boolean {
  return some(value, isSecret);
}

/** True where anything in the value is not known yet. */
export function containsUnknown(value: Value | undefined): boolean {
  return some(value, (item) => item === UNKNOWN);
}

/** The properties that are known; outputs of what a run leaves out are not. */
export function knownProps(props: Props): Props {
  return Object.fromEntries(Object.entries(props).filter(([, value]) => !containsUnknown(value)));
}

/** True where an asset or archive is anywhere in the value. */
export function containsAsset(value: Value | undefined): boolean {
  return some(value, (item) => isObject(item) && (item[SIGNATURE] === ASSET || item[SIGNATURE] === ARCHIVE));
}

/**
 * What a provider gets to see: secrets unwrapped, references as the resource's id (its urn for a component).
 * Unknown values stay.
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

/** Applies a function to every property. */
export function mapProps(props: Props, fn: (value: Value, key: string) => Value): Props {
  const out: Props = {};
  for (const [key, value] of Object.entries(props)) out[key] = fn(value, key);
  return out;
}

/** `plain` over all properties. */
export function plainProps(props: Props): Props {
  return mapProps(props, plain);
}

/**
 * Marks again as secret what a provider gave back in clear: by the same key, going into objects; an array that
 * held a secret becomes secret as a whole.
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

/** Makes the named properties secret, where they exist. */
export function markNamed(props: Props, names: string[]): Props {
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

/** Top-level keys whose values differ between two sets of properties. */
export function changedKeys(a: Props, b: Props): string[] {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].filter((key) => !equal(a[key], b[key]));
}
