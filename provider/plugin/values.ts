import structProto from "google-protobuf/google/protobuf/struct_pb.js";
import {
  isObject,
  mapProps,
  markSecrets,
  type Props,
  plainProps,
  secret,
  type Value,
} from "../engine/value.ts";
import { OUTPUT, SIGNATURE, UNKNOWN, UNKNOWNS } from "../valueMarks.ts";

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
