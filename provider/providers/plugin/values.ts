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
import { hasUnknown } from "../../resources/values.ts";

type Struct = structProto.Struct;

/** The properties in a message, with the engine's marks; none where it is missing. */
export function propsIn(struct: Struct | undefined): Props {
  return mapProps((struct?.toJavaScript() ?? {}) as Props, withoutOutputs);
}

/** Engines have a mark of the unknown for each type, and one that says of a value all that an output knows. */
function withoutOutputs(value: Value): Value {
  if (typeof value === "string") return UNKNOWNS.includes(value) ? UNKNOWN : value;
  if (Array.isArray(value)) return value.map(withoutOutputs);
  if (!isObject(value)) return value;
  if (value[SIGNATURE] !== OUTPUT) return mapProps(value, withoutOutputs);
  const known = value.value === undefined ? UNKNOWN : withoutOutputs(value.value);
  return value.secret === true ? secret(known) : known;
}

/** The values as resources take them: secrets are bare, a reference is an id. What is unknown stays marked. */
export const plainValues = (props: Props): Record<string, unknown> => plainProps(props);

/**
 * The values with each list unknown as a whole that has anything unknown in it: nobody can tell in which order it will
 * be, or which of its items are equal.
 */
export function knownLists(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const known = (value: unknown): unknown => {
    if (Array.isArray(value)) return hasUnknown(value) ? UNKNOWN : value;
    return typeof value === "object" && value !== null ? knownLists({ ...value }) : value;
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, known(value)]));
}

/** The names of properties that are secret, or have something secret in them. */
export const secretNames = (props: Props): string[] =>
  Object.keys(props).filter((name) => containsSecret(props[name]));

/** The secret texts in properties, longest first, so that of those that contain each other all is masked. */
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
 * Values as a message. Undefined ones are left out.
 * @param like properties whose secrets are secret here too
 * @param secrets names of values that are always secret
 */
export function structOf(
  values: Readonly<Record<string, unknown>>,
  like: Props = {},
  secrets: readonly string[] = [],
): Struct {
  const defined = Object.entries(values).filter(([, value]) => value !== undefined) as [string, Value][];
  const marked = defined.map(([name, value]) => [name, secrets.includes(name) ? secret(value) : value]);
  const props = markSecrets(Object.fromEntries(marked), like);
  return structProto.Struct.fromJavaScript(props as Parameters<typeof structProto.Struct.fromJavaScript>[0]);
}

const { ADD, ADD_REPLACE, DELETE, DELETE_REPLACE, UPDATE, UPDATE_REPLACE } = proto.PropertyDiff.Kind;

/** Without and with a replacement. */
const KINDS = {
  ADD: [ADD, ADD_REPLACE],
  DELETE: [DELETE, DELETE_REPLACE],
  UPDATE: [UPDATE, UPDATE_REPLACE],
} as const;

/** One place in a resource's inputs whose value changes. */
interface Difference {
  /** As the engine writes paths: `filter.tags`, `keepers["a key"]`. */
  readonly path: string;
  readonly kind: keyof typeof KINDS;
}

/** Adds what changes to a diff, field by field within objects, each place marked with whether it replaces. */
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

/** Where two values differ. A list counts as one value: its order means nothing. */
function differences(path: string, before: unknown, after: unknown): Difference[] {
  if (isObject(before) && isObject(after)) {
    const inside = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
      (key) => !isDeepStrictEqual(before[key], after[key]),
    );
    // Engines read no backslash in a path.
    if (inside.length > 0 && !inside.some((key) => key.includes("\\"))) {
      return inside.flatMap((key) => differences(member(path, key), before[key], after[key]));
    }
  }
  return [{ path, kind: before === undefined ? "ADD" : after === undefined ? "DELETE" : "UPDATE" }];
}

const member = (path: string, key: string) =>
  /^[A-Za-z_]\w*$/.test(key) ? `${path}.${key}` : `${path}["${key.replaceAll('"', '\\"')}"]`;

type Values = Readonly<Record<string, unknown>>;

/**
 * The inputs with what the state has at the places whose changes are to be ignored. The engine puts the program's last
 * values there, which after a change by hand are not what is there.
 * @param paths as the engine writes them: `filter.tags`, `keepers["a key"]`; `*` stands for all members
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
