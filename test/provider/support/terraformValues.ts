import { isDeepStrictEqual } from "node:util";
import { decode, ExtData, ExtensionCodec, encode } from "@msgpack/msgpack";

// Terraform's handling of values in the protocol, and its checks of values that a provider returns. This module does
// not use the provider's own conversions.

/** Represents an unknown value. */
export const UNKNOWN = Symbol("unknown");

/** The attribute values of an object, by attribute name. A missing attribute is null. */
export type Row = Readonly<Record<string, unknown>>;

/** A value in the encoding of protocol messages. */
export interface Wire {
  readonly msgpack?: Uint8Array;
}

/** An attribute in a schema that the provider returns. */
export interface SchemaAttribute {
  readonly name: string;
  readonly type?: Uint8Array;
  readonly nestedType?: { readonly attributes: readonly SchemaAttribute[]; readonly nesting: number };
  readonly required?: boolean;
  readonly optional?: boolean;
  readonly computed?: boolean;
  readonly writeOnly?: boolean;
}

/** The type of an attribute value. */
type Shape =
  | { readonly kind: "string" | "number" | "bool" }
  | { readonly kind: "list" | "set" | "map"; readonly of: Shape }
  | { readonly kind: "object"; readonly members: readonly Attribute[] };

/** An attribute of an object, with its decoded type. */
export interface Attribute extends Pick<SchemaAttribute, "name" | "computed" | "writeOnly"> {
  readonly shape: Shape;
}

/**
 * The protocol's numbers of the nesting modes for several objects. Number 1, which is not in this table, is the mode
 * for a single object.
 */
const NESTING = new Map([
  [2, "list"],
  [3, "set"],
  [4, "map"],
] as const);

/** The type of an attribute. */
export function attributeOf({ name, type, nestedType, computed, writeOnly }: SchemaAttribute): Attribute {
  const flags = { name, computed: computed ?? false, writeOnly: writeOnly ?? false };
  if (!nestedType) return { ...flags, shape: shapeOf(JSON.parse(Buffer.from(type ?? []).toString("utf8"))) };
  const of: Shape = { kind: "object", members: nestedType.attributes.map(attributeOf) };
  const kind = NESTING.get(nestedType.nesting as 2);
  return { ...flags, shape: kind ? { kind, of } : of };
}

function shapeOf(type: unknown): Shape {
  if (!Array.isArray(type)) return { kind: type as "string" };
  const [kind, of] = type;
  if (kind !== "object") return { kind, of: shapeOf(of) };
  const members = Object.entries(of as object).map(([name, member]) => ({ name, shape: shapeOf(member) }));
  return { kind, members };
}

/** Encodes an object for a message. Undefined is encoded as null. */
export const encoded = (row: Row | undefined): { msgpack: Uint8Array } => ({
  msgpack: encode(marked(row ?? null)),
});

function marked(value: unknown): unknown {
  if (value === UNKNOWN) return new ExtData(0, new Uint8Array([0]));
  if (Array.isArray(value)) return value.map(marked);
  return isRow(value) ? mapValues(value, marked) : value;
}

/**
 * Applies functions to the leaves and objects of a value, and sorts sets.
 * @throws Error if the value does not match the type
 */
function mapped(
  shape: Shape,
  value: unknown,
  leaf: (kind: string, value: unknown) => unknown,
  object: (members: readonly Attribute[], row: Row) => unknown,
): unknown {
  const wrong = () => new Error(`${text(value)} is no ${shape.kind}`);
  const each = (item: unknown) => mapped((shape as { readonly of: Shape }).of, item, leaf, object);
  if (value === null || value === undefined || value === UNKNOWN) return leaf("none", value);
  if (shape.kind === "list" || shape.kind === "set") {
    if (!Array.isArray(value)) throw wrong();
    return shape.kind === "set" ? asSet(value.map(each)) : value.map(each);
  }
  if (shape.kind !== "map" && shape.kind !== "object") return leaf(shape.kind, value);
  if (!isRow(value)) throw wrong();
  if (shape.kind === "object") return object(shape.members, value);
  return mapValues(value, each);
}

/**
 * Decodes the object in a message. Returns undefined for null.
 * @throws Error if the attributes differ from the schema, or a value has a different type
 */
export function decoded(members: readonly Attribute[], wire: Wire | undefined): Row | undefined {
  if (!wire?.msgpack?.length) throw new Error("the provider sends no value");
  const codec = new ExtensionCodec();
  codec.register({ type: 0, encode: () => null, decode: () => UNKNOWN });
  const value = decode(wire.msgpack, { extensionCodec: codec });
  const object = (members: readonly Attribute[], row: Row): Row => {
    const [names, expected] = [Object.keys(row), members.map(({ name }) => name)].map((all) =>
      all.sort().join(),
    );
    if (names !== expected) throw new Error(`the provider sends ${names}; the schema has ${expected}`);
    return Object.fromEntries(
      members.map(({ name, shape }) => [name, mapped(shape, row[name], leaf, object)]),
    );
  };
  return value === null ? undefined : object(members, value as Row);
}

/** Checks the type of a value. A number may be encoded as text. */
function leaf(kind: string, value: unknown): unknown {
  if (kind === "none") return value;
  const parsed = kind === "number" && typeof value === "string" && value !== "" ? Number(value) : value;
  const type = kind === "bool" ? "boolean" : kind;
  if (typeof parsed !== type || Number.isNaN(parsed))
    throw new Error(`the provider sends ${text(value)} for a ${kind}`);
  return parsed;
}

/** Sorts the elements and removes duplicates, since Terraform's sets have no order. */
const asSet = (items: readonly unknown[]): unknown[] =>
  [...new Map(items.map((item) => [JSON.stringify(item), item])).entries()]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([, item]) => item);

const camel = (name: string): string =>
  name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());

/**
 * Converts an input value to the type in the schema, like Terraform. For example, converts a boolean to a string if the
 * schema requires a string.
 * @throws Error for an attribute that the schema does not have
 */
export const given = (shape: Shape, value: unknown): unknown =>
  mapped(
    shape,
    value,
    (kind, one) => (kind === "none" ? null : kind === "string" ? String(one) : one),
    (members, row) => {
      const known = members.map(({ name }) => camel(name));
      const unexpected = Object.keys(row).filter((name) => row[name] !== undefined && !known.includes(name));
      if (unexpected.length > 0) throw new Error(`${unexpected}: is not expected here`);
      return rowOf(members, row);
    },
  );

/** Converts an object in the test harness's form to a row of attributes. Ignores fields that are not in the schema. */
export const rowOf = (members: readonly Attribute[], values: Row): Record<string, unknown> =>
  Object.fromEntries(members.map(({ name, shape }) => [name, given(shape, values[camel(name)])]));

/** Converts a row of attributes to the test harness's form: changes the names to camelCase and omits null values. */
export function valuesOf(members: readonly Attribute[], row: Row): Record<string, unknown> {
  const values = members.map(({ name, shape }) => [camel(name), taken(shape, row[name])] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

const taken = (shape: Shape, value: unknown): unknown =>
  mapped(shape, value, (kind, one) => (kind === "none" ? undefined : one), valuesOf);

/**
 * Returns the proposed state for a configuration. Computed attributes that the configuration does not set keep the
 * value of the prior state.
 */
export const proposed = (members: readonly Attribute[], prior: Row | undefined, config: Row): Row =>
  Object.fromEntries(
    members.map(({ name, computed, writeOnly }) => [
      name,
      writeOnly ? null : (config[name] ?? (computed ? (prior?.[name] ?? null) : null)),
    ]),
  );

/**
 * Makes Terraform's checks of a planned state. Each value comes from the configuration or, if equivalent, from the
 * prior state. The provider may choose only computed values that the configuration does not set.
 * @throws Error with the name of the attribute
 */
export function mustFollow(
  members: readonly Attribute[],
  {
    prior,
    config,
    planned,
  }: { readonly prior: Row | undefined; readonly config: Row; readonly planned: Row },
  at = "",
): void {
  for (const { name, shape, computed, writeOnly } of members) {
    const [before, configured, after] = [prior?.[name] ?? null, config[name] ?? null, planned[name]];
    const fails = (why: string) =>
      new Error(`planned ${at}${name} is ${text(after)}, ${why}: ${text(configured)} before ${text(before)}`);
    if (writeOnly) {
      if (after !== null) throw fails("though it is write-only");
    } else if (isDeepStrictEqual(after, configured)) {
    } else if (configured === null) {
      if (!computed) throw fails("though the configuration does not set it");
    } else if (before !== null && isDeepStrictEqual(after, before)) {
    } else if (shape.kind === "object" && isRow(configured) && isRow(after)) {
      const inner = { prior: isRow(before) ? before : undefined, config: configured, planned: after };
      mustFollow(shape.members, inner, `${at}${name}.`);
    } else throw fails("and not as configured");
  }
}

/**
 * Makes Terraform's check that a value keeps all known parts of the planned value.
 * @throws Error with the name of the attribute
 */
export function mustKeep(planned: unknown, actual: unknown, at: string): void {
  if (planned === UNKNOWN || isDeepStrictEqual(planned, actual)) return;
  if (Array.isArray(planned) && Array.isArray(actual) && planned.length === actual.length) {
    for (const [index, item] of planned.entries()) mustKeep(item, actual[index], `${at}.${index}`);
    return;
  }
  if (!isRow(planned) || !isRow(actual)) {
    throw new Error(`${at} was planned as ${text(planned)}, and is ${text(actual)}`);
  }
  for (const name of new Set([...Object.keys(planned), ...Object.keys(actual)])) {
    mustKeep(planned[name] ?? null, actual[name] ?? null, `${at}.${name}`);
  }
}

/**
 * Checks that a state has no unknown and no write-only value.
 * @throws Error if the state has one
 */
export function mustBeKnown(members: readonly Attribute[], row: Row): void {
  for (const { name, writeOnly } of members) {
    if (hasUnknown(row[name])) throw new Error(`${name} is not known in a state`);
    if (writeOnly && row[name] !== null) throw new Error(`${name} is write-only, and in a state`);
  }
}

function hasUnknown(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasUnknown);
  return value === UNKNOWN || (isRow(value) && Object.values(value).some(hasUnknown));
}

const text = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) => (member === UNKNOWN ? "(unknown)" : member));

const isRow = (value: unknown): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);

const mapValues = (values: Row, of: (value: unknown, name: string) => unknown): Row =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, of(value, name)]));
