import { UNKNOWN } from "../engineMarks.ts";
import type { Schema } from "../model/jsonSchema.ts";
import type { Phrases, Words } from "../resourceError.ts";
import { definitions } from "../resources/index.ts";

/** The type of a value in Terraform. Its object members also contain their property names in the declarative model. */
export type Type =
  | { readonly kind: "string" /** True if the value may also be a boolean. */; readonly orBool?: true }
  | { readonly kind: "number" | "bool" }
  | { readonly kind: "set" | "list" | "map"; readonly of: Type }
  | { readonly kind: "object"; readonly members: readonly Member[] };

/** A member of an object. */
export interface Member {
  /** The member's name in Terraform. */
  readonly name: string;
  /** The member's name in the declarative model. */
  readonly property: string;
  readonly type: Type;
  readonly description: string;
  readonly required: boolean;
}

/** Values in Terraform's form. A missing value is null, and an unknown value is the mark {@link UNKNOWN}. */
export type Row = Readonly<Record<string, unknown>>;

/** Converts a property name to Terraform's form: `sourceIp` to `source_ip`. */
export const terraformName = (property: string): string =>
  property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Returns the name of the write-only attribute for a secret output. */
export const secretName = (property: string): string => `${terraformName(property)}_wo`;

/** The type of a string. */
export const STRING: Type = { kind: "string" };

/**
 * Returns the Terraform member for a value of the declarative model.
 * @param required default: false
 */
export const memberOf = (property: string, description: string, type: Type, required = false): Member => ({
  name: terraformName(property),
  property,
  type,
  description,
  required,
});

/** Returns the type name of a resource in Terraform: `PublicKey` is `gatehouse_public_key`. */
export const typeNameOf = ({ name }: { readonly name: string }): string => `gatehouse${terraformName(name)}`;

/**
 * Returns the Terraform type for a JSON Schema. Lists of plain values become sets, because their order has no meaning.
 * @throws Error for a schema that has no type in Terraform
 */
export function typeOf(schema: Schema, definitions = schema.definitions ?? {}): Type {
  const { $ref, ...rest } = schema;
  if ($ref !== undefined)
    return typeOf({ ...definitions[$ref.split("/").at(-1) ?? ""], ...rest }, definitions);
  if (schema.anyOf) return typeOfAny(schema.anyOf, definitions);
  const sample = schema.enum?.[0] ?? schema.const;
  const [type = typeof sample] = [schema.type ?? []].flat().filter((name) => name !== "null");
  switch (type) {
    case "string":
      return STRING;
    case "boolean":
      return { kind: "bool" };
    case "integer":
    case "number":
      return { kind: "number" };
    case "array": {
      const of = typeOf(schema.items ?? {}, definitions);
      return { kind: of.kind === "object" ? "list" : "set", of };
    }
    case "object":
      if (typeof schema.additionalProperties === "object" && !schema.properties) {
        return { kind: "map", of: typeOf(schema.additionalProperties, definitions) };
      }
      return { kind: "object", members: membersOf(schema, definitions) };
    default:
      throw new Error(`no Terraform type for ${JSON.stringify(schema)}`);
  }
}

/**
 * Merges several variants of a value into one type. Object variants become one object with the members of all variants.
 * The validation of inputs checks which members can be combined.
 */
function typeOfAny(forms: readonly Schema[], definitions: NonNullable<Schema["definitions"]>): Type {
  const types = forms.filter(({ type }) => type !== "null").map((form) => typeOf(form, definitions));
  const [first] = types;
  if (!first) throw new Error("no Terraform type for a schema that only accepts null");
  if (types.every((type) => type.kind === "object")) {
    const members = new Map(types.flatMap((type) => type.members).map((member) => [member.name, member]));
    return {
      kind: "object",
      members: [...members.values()].map((member) => ({ ...member, required: false })),
    };
  }
  const kinds = new Set(types.map(({ kind }) => kind));
  if (kinds.size === 1) return first;
  if (kinds.size === 2 && kinds.has("bool") && kinds.has("string")) return { kind: "string", orBool: true };
  throw new Error(`no Terraform type for ${[...kinds].join(" or ")}`);
}

function membersOf(schema: Schema, definitions: NonNullable<Schema["definitions"]>): Member[] {
  return Object.entries(schema.properties ?? {})
    .filter(([, member]) => !member.not)
    .map(([property, member]) => {
      const type = typeOf(member, definitions);
      return memberOf(property, member.description ?? "", type, schema.required?.includes(property));
    });
}

/** Returns a type in Terraform's JSON notation. */
export function typeConstraint(type: Type): unknown {
  switch (type.kind) {
    case "set":
    case "list":
    case "map":
      return [type.kind, typeConstraint(type.of)];
    case "object":
      return [
        "object",
        Object.fromEntries(type.members.map(({ name, type }) => [name, typeConstraint(type)])),
      ];
    default:
      return type.kind;
  }
}

/** Converts a value of the declarative model to Terraform's form. A missing value becomes null. */
export function toTerraform(type: Type, value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (value === UNKNOWN) return UNKNOWN;
  switch (type.kind) {
    case "string":
      return String(value);
    case "set":
    case "list":
      return (value as readonly unknown[]).map((item) => toTerraform(type.of, item));
    case "map":
      return mapValues(value as Row, (member) => toTerraform(type.of, member));
    case "object":
      return rowOf(type.members, value as Row);
    default:
      return value;
  }
}

/** Converts an object of the declarative model to Terraform's form. */
export const rowOf = (members: readonly Member[], values: Row): Record<string, unknown> =>
  Object.fromEntries(members.map(({ name, property, type }) => [name, toTerraform(type, values[property])]));

/** Converts a value from Terraform's form to the declarative model. Null becomes undefined. */
export function fromTerraform(type: Type, value: unknown): unknown {
  if (value === undefined || value === null) return undefined;
  if (value === UNKNOWN) return UNKNOWN;
  switch (type.kind) {
    case "string":
      return type.orBool && (value === "true" || value === "false") ? value === "true" : value;
    case "set":
    case "list":
      return (value as readonly unknown[]).map((item) => fromTerraform(type.of, item));
    case "map":
      return mapValues(value as Row, (member) => fromTerraform(type.of, member));
    case "object":
      return valuesOf(type.members, value as Row);
    default:
      return value;
  }
}

/** Converts an object from Terraform's form to the declarative model, without null values. */
export function valuesOf(members: readonly Member[], row: Row): Record<string, unknown> {
  const values = members.map(
    ({ name, property, type }) => [property, fromTerraform(type, row[name])] as const,
  );
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

const mapValues = (values: Row, of: (value: unknown) => unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, of(value)]));

/**
 * Returns true if a value in Terraform's form has a given type. Null and the mark {@link UNKNOWN} match every type.
 */
export function hasType(type: Type, value: unknown): boolean {
  if (value === null || value === undefined || value === UNKNOWN) return true;
  switch (type.kind) {
    case "set":
    case "list":
      return Array.isArray(value) && value.every((item) => hasType(type.of, item));
    case "map":
      return isRow(value) && Object.values(value).every((member) => hasType(type.of, member));
    case "object":
      return isRow(value) && type.members.every((member) => hasType(member.type, value[member.name]));
    case "bool":
      return typeof value === "boolean";
    case "string":
      return typeof value === "string" || (type.orBool === true && typeof value === "boolean");
    case "number":
      return typeof value === "number";
  }
}

const isRow = (value: unknown): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const PHRASES: Phrases = {
  elsewhere: "created manually, by another configuration, or by an interrupted apply",
  inTurn: "in a separate apply",
  adopt: "to adopt it, or import it by this id",
  refresh: "run terraform plan again",
  ofThisProgram: "resource of this configuration",
  ofTheProgram: "resource of the configuration",
  dependsOn: "depends_on",
};

/**
 * Writes the terms in messages in Terraform's notation. For example, `forceDestroy: true` becomes `force_destroy =
 * true`.
 */
export const terraformTerms: Words = (term) => {
  if ("phrase" in term) return PHRASES[term.phrase];
  const name = terraformName(term.field);
  return term.value === undefined ? name : `${name} = ${JSON.stringify(term.value)}`;
};

const TYPES = new Map(definitions.map((definition) => [definition.name, typeNameOf(definition)]));

/** Replaces the resource names in backticks in a description by Terraform's type names. */
export const describedInTerraform = (text: string): string =>
  text.replaceAll(/`([A-Z]\w+)`/g, (code, name: string) =>
    TYPES.has(name) ? `\`${TYPES.get(name)}\`` : code,
  );
