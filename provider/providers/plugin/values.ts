import { isDeepStrictEqual } from "node:util";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import structProto from "google-protobuf/google/protobuf/struct_pb.js";
import {
  containsSecret,
  isObject,
  isSecret,
  mapProps,
  markSecrets,
  type Props,
  plain,
  plainProps,
  secret,
  type Value,
} from "../../engine/value.ts";
import { OUTPUT, SIGNATURE, UNKNOWN, UNKNOWNS } from "../../engineMarks.ts";
import type { InputChange } from "../../lifecycle/diff.ts";
import { hasUnknown } from "../../model/values.ts";
import type { Values } from "../../values.ts";

type Struct = structProto.Struct;

/**
 * Returns the properties in a message, with the engine's marks for secret values, unknown values and references. Empty
 * if the message has no properties.
 */
export function propsIn(struct: Struct | undefined): Props {
  return mapProps((struct?.toJavaScript() ?? {}) as Props, withoutOutputs);
}

/**
 * Converts the engine's marks in properties. Marks for unknown values of any type become {@link UNKNOWN}. Outputs with
 * metadata become plain or secret values.
 */
function withoutOutputs(value: Value): Value {
  if (typeof value === "string") return UNKNOWNS.includes(value) ? UNKNOWN : value;
  if (Array.isArray(value)) return value.map(withoutOutputs);
  if (!isObject(value)) return value;
  if (value[SIGNATURE] !== OUTPUT) return mapProps(value, withoutOutputs);
  const known = value.value === undefined ? UNKNOWN : withoutOutputs(value.value);
  return value.secret === true ? secret(known) : known;
}

/**
 * Returns the values in the form that resources accept. Secrets become plain values, and references become ids. Unknown
 * values keep their mark.
 */
export const plainValues = (props: Props): Record<string, unknown> => plainProps(props);

/**
 * Replaces each list that contains an unknown item with the mark for unknown values. The order and the duplicates of
 * such a list cannot be determined yet.
 */
export function knownLists(values: Values): Record<string, unknown> {
  const known = (value: unknown): unknown => {
    if (Array.isArray(value)) return hasUnknown(value) ? UNKNOWN : value;
    return typeof value === "object" && value !== null ? knownLists({ ...value }) : value;
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, known(value)]));
}

/** Returns the names of properties that are secret or contain a secret. */
export const secretNames = (props: Props): string[] =>
  Object.keys(props).filter((name) => containsSecret(props[name]));

/** Returns the secret strings in properties, longest first, so that overlapping secrets are masked completely. */
export function secretTexts(props: Props): string[] {
  const texts = (value: Value): string[] => {
    if (typeof value === "string") return value === "" || value === UNKNOWN ? [] : [value];
    if (Array.isArray(value)) return value.flatMap(texts);
    return isObject(value) ? Object.values(value).flatMap(texts) : [];
  };
  const secrets = (value: Value): string[] => {
    if (isSecret(value)) return texts(plain(value));
    if (Array.isArray(value)) return value.flatMap(secrets);
    return isObject(value) ? Object.values(value).flatMap(secrets) : [];
  };
  return secrets(props).sort((a, b) => b.length - a.length);
}

/**
 * Converts values to a message. Omits undefined values.
 * @param like the properties in the request; a value that is secret in the request is also secret in the message
 * @param secrets the names of values that are always secret
 */
export function structOf(values: Values, like: Props = {}, secrets: readonly string[] = []): Struct {
  const defined = Object.entries(values).filter(([, value]) => value !== undefined) as [string, Value][];
  const marked = defined.map(([name, value]) => [name, secrets.includes(name) ? secret(value) : value]);
  const props = markSecrets(Object.fromEntries(marked), like);
  return structProto.Struct.fromJavaScript(props as Parameters<typeof structProto.Struct.fromJavaScript>[0]);
}

const { ADD, ADD_REPLACE, DELETE, DELETE_REPLACE, UPDATE, UPDATE_REPLACE } = proto.PropertyDiff.Kind;

/**
 * Pulumi's diff kinds for each kind of change. The first value of each pair is for a change that updates the resource.
 * The second value is for a change that replaces it.
 */
const KINDS = {
  ADD: [ADD, ADD_REPLACE],
  DELETE: [DELETE, DELETE_REPLACE],
  UPDATE: [UPDATE, UPDATE_REPLACE],
} as const;

/** A changed value at one path of a resource's inputs. */
interface Difference {
  /** The path in the engine's notation: `filter.tags`, `keepers["a key"]`. */
  readonly path: string;
  readonly kind: keyof typeof KINDS;
}

/**
 * Adds details to Pulumi's diff response: one entry for each changed property path. Each entry states whether the
 * change replaces the resource.
 */
export function addDetails(
  response: InstanceType<typeof proto.DiffResponse>,
  changes: readonly InputChange[],
): void {
  response.setHasdetaileddiff(true);
  for (const { field, before, after, replaces } of changes) {
    for (const { path, kind } of differences(field, before, after)) {
      const detail = new proto.PropertyDiff();
      detail.setKind(KINDS[kind][replaces ? 1 : 0]);
      response.getDetaileddiffMap().set(path, detail);
    }
  }
}

/**
 * Returns the paths at which two values differ. Lists are not compared item by item, because their order has no
 * meaning.
 */
function differences(path: string, before: unknown, after: unknown): Difference[] {
  if (isObject(before) && isObject(after)) {
    const inside = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
      (key) => !isDeepStrictEqual(before[key], after[key]),
    );
    // Engines do not support backslashes in a path. If a key contains a backslash, the whole object is reported as one
    // change.
    if (inside.length > 0 && !inside.some((key) => key.includes("\\"))) {
      return inside.flatMap((key) => differences(member(path, key), before[key], after[key]));
    }
  }
  return [{ path, kind: before === undefined ? "ADD" : after === undefined ? "DELETE" : "UPDATE" }];
}

const member = (path: string, key: string) =>
  /^[A-Za-z_]\w*$/.test(key) ? `${path}.${key}` : `${path}["${key.replaceAll('"', '\\"')}"]`;

/**
 * Returns the inputs with some values replaced: at ignored paths, the result has the values in the state. The engine
 * passes the inputs of the last run at these paths. After an out-of-band change, these inputs differ from the object,
 * so an update would revert the change.
 * @param paths the ignored paths, in the engine's notation: `filter.tags`, `keepers["a key"]`; `*` matches all members
 */
export function keepIgnored(
  inputs: Values,
  state: Values,
  paths: readonly string[],
): Record<string, unknown> {
  const steps = paths.map((path) => [...path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|[^.[\]]+/g)].map(keyOf));
  return steps.reduce<Record<string, unknown>>((kept, keys) => withState(kept, state, keys), { ...inputs });
}

const keyOf = ([whole, quoted]: RegExpMatchArray) => quoted?.replaceAll('\\"', '"') ?? whole;

function withState(
  inputs: Values,
  state: Values,
  [key = "*", ...inside]: readonly string[],
): Record<string, unknown> {
  if (key === "*") return { ...state };
  const { [key]: before } = state;
  const { [key]: given, ...rest } = inputs;
  if (inside.length > 0 && isObject(given) && isObject(before)) {
    return { ...rest, [key]: withState(given, before, inside) };
  }
  return before === undefined ? rest : { ...rest, [key]: before };
}
