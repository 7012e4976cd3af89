import type { ResourceDefinition } from "../model/definition.ts";
import type { InputField, OutputField } from "../model/fields.ts";
import { jsonSchema, readOnlyText } from "../model/jsonSchema.ts";
import {
  describedInTerraform,
  type Member,
  memberOf,
  STRING,
  secretName,
  type Type,
  typeConstraint,
  typeOf,
} from "./types.ts";

/** The role of an attribute of a resource. */
type Role =
  /** The resource's id. */
  | { readonly role: "id" }
  /** A value that a configuration declares. */
  | { readonly role: "input"; readonly field: InputField }
  /** An instruction to the run. It is not part of the object. */
  | { readonly role: "instruction"; readonly field: InputField }
  /** A value that the service sets. */
  | { readonly role: "output"; readonly field: OutputField }
  /** A secret that the configuration sets. It is not stored in the state or the plan. */
  | { readonly role: "secret"; readonly field: OutputField }
  /**
   * A version number of a secret. A new version number sets a new secret, because Terraform cannot detect a change to
   * the secret itself.
   */
  | { readonly role: "secretVersion" }
  /** A secret input. It is not stored in the state or the plan. */
  | { readonly role: "secretInput"; readonly field: InputField }
  /** A version number of a secret input. A new version number sends the secret again. */
  | { readonly role: "secretInputVersion" };

/** An attribute of a resource in Terraform. */
export type Attribute = Member & Role;

/**
 * Returns the attributes of a resource, from its definition. Terraform stores states in plaintext, so the attributes
 * contain no secret outputs. If a program can choose a secret, the secret becomes a write-only input. Other secret
 * outputs are omitted.
 */
export function attributesOf(definition: ResourceDefinition): readonly Attribute[] {
  const { id, idNote, inputs, outputs } = definition;
  const note = idNote === undefined ? "" : ` (${idNote})`;
  const all: Attribute[] = [
    { ...memberOf("id", `The ID of the resource: \`${id.text}\`${note}.`, STRING), role: "id" },
    ...Object.entries(inputs).flatMap(([property, field]): Attribute[] => {
      const { description, required, transient, default: fallback, replaces, secret } = field;
      if (secret) return secretInputAttributes(property, field);
      const type = withDefaults(typeOf(jsonSchema(field.schema)), fallback);
      const text = `${description}${defaultText(fallback)}${replaces ? REPLACES : ""}`;
      const member = memberOf(property, text, type, required);
      return [{ ...member, role: transient ? "instruction" : "input", field }];
    }),
    ...Object.entries(outputs).flatMap(([property, field]) => outputAttributes(property, field)),
  ];
  return all.map((attribute) => withTerms(definition, attribute));
}

/** A sentence for the description of an input, if a change to the input replaces the object. */
const REPLACES = " Changing this forces a new resource to be created.";

/**
 * Returns the sentence that describes a default value. Returns an empty string for objects, because each property of an
 * object has its own sentence.
 */
const defaultText = (value: unknown): string =>
  ["string", "number", "boolean"].includes(typeof value)
    ? ` Defaults to \`${value === "" ? '""' : value}\`.`
    : "";

/** Returns a copy of a type in which the description of each nested attribute includes its default. */
function withDefaults(type: Type, fallback: unknown): Type {
  if (type.kind !== "object" || typeof fallback !== "object" || fallback === null) return type;
  const values = fallback as Readonly<Record<string, unknown>>;
  const members = type.members.map((member) => ({
    ...member,
    description: `${member.description}${defaultText(values[member.property])}`,
  }));
  return { ...type, members };
}

/**
 * Returns the read-only form of an attribute. Removes the instructions for setting a value from all descriptions,
 * including those of nested attributes.
 */
export function readOnly<M extends Member>(member: M): M {
  const readOnlyType = (type: Type): Type => {
    if (type.kind === "object") return { ...type, members: type.members.map((inner) => readOnly(inner)) };
    return "of" in type ? { ...type, of: readOnlyType(type.of) } : type;
  };
  return { ...member, description: readOnlyText(member.description), type: readOnlyType(member.type) };
}

/** Returns an attribute with Terraform's terms in its description and in the descriptions of its nested attributes. */
function withTerms<M extends Member>(definition: ResourceDefinition, member: M): M {
  const typeWithTerms = (type: Type): Type => {
    if (type.kind === "object") {
      return { ...type, members: type.members.map((inner) => withTerms(definition, inner)) };
    }
    return "of" in type ? { ...type, of: typeWithTerms(type.of) } : type;
  };
  const description = describedInTerraform(member.description);
  return { ...member, description, type: typeWithTerms(member.type) };
}

function secretInputAttributes(property: string, field: InputField): Attribute[] {
  const name = secretName(property);
  const description = `${field.description} The value is not stored in state or plan: set it from an ephemeral value.`;
  return [
    { ...memberOf(property, description, STRING), name, role: "secretInput", field },
    {
      ...memberOf(
        `${property}Version`,
        `A version number for \`${name}\`. Changing it sends the current value of \`${name}\`.`,
        { kind: "number" },
      ),
      name: `${name}_version`,
      role: "secretInputVersion",
    },
  ];
}

function outputAttributes(property: string, field: OutputField): Attribute[] {
  const { description, secret, choice } = field;
  if (!secret)
    return [{ ...memberOf(property, description, typeOf(jsonSchema(field.schema))), role: "output", field }];
  if (!choice) return [];
  const chosen = { ...memberOf(property, "", STRING), name: secretName(property) };
  return [
    {
      ...chosen,
      description:
        "The secret of the key. Required to create a key. Must be a version 4 UUID that no other key uses. The value is not stored in state or plan: set it from an ephemeral value, and store it where the key is used.",
      role: "secret",
      field,
    },
    {
      ...chosen,
      name: `${chosen.name}_version`,
      property: `${property}Version`,
      type: { kind: "number" },
      description: `A version number for \`${chosen.name}\`. Changing it creates a new key with the current value of \`${chosen.name}\`.`,
      role: "secretVersion",
    },
  ];
}

/** The codes of Terraform's plugin protocol for the nesting modes of nested attributes. */
const NESTING = { object: 1, list: 2, set: 3, map: 4 } as const;

/** The schema flags that determine whether the configuration or the provider sets the value of an attribute. */
interface Given {
  readonly required?: boolean;
  readonly optional?: boolean;
  readonly computed?: boolean;
  readonly sensitive?: boolean;
  readonly writeOnly?: boolean;
}

/**
 * Returns an attribute of a Terraform schema.
 * @param memberGiven returns the flags of nested members
 */
function schemaAttribute(
  { name, type, description }: Member,
  given: Given,
  memberGiven: (member: Member) => Given,
): object {
  const all = { name, description, ...given };
  const inner = "of" in type ? type.of : type;
  if (inner.kind !== "object") return { ...all, type: Buffer.from(JSON.stringify(typeConstraint(type))) };
  const attributes = inner.members.map((member) => schemaAttribute(member, memberGiven(member), memberGiven));
  return { ...all, nestedType: { attributes, nesting: NESTING[type.kind as keyof typeof NESTING] } };
}

const COMPUTED: Given = { computed: true };

/** Returns the schema flags of an attribute, and a function that returns the schema flags of its nested attributes. */
function givenBy(attribute: Attribute): readonly [Given, (member: Member) => Given] {
  switch (attribute.role) {
    case "id":
    case "output":
      return [COMPUTED, () => COMPUTED];
    case "instruction":
      // The attribute is also computed, so that Terraform plans no change if the configuration omits it.
      return [{ optional: true, computed: true }, () => ({ optional: true })];
    case "secret":
    case "secretInput":
      return [{ optional: true, writeOnly: true, sensitive: true }, () => ({ optional: true })];
    case "secretVersion":
    case "secretInputVersion":
      return [{ optional: true }, () => ({ optional: true })];
    case "input": {
      const { required, default: fallback } = attribute.field;
      const isFilled = fallback !== undefined;
      return [
        required ? { required: true } : { optional: true, computed: true },
        (member) => (member.required ? { required: true } : { optional: true, computed: isFilled }),
      ];
    }
  }
}

export const resourceSchema = (description: string, attributes: readonly Attribute[]): object =>
  block(
    description,
    attributes.map((attribute) => schemaAttribute(attribute, ...givenBy(attribute))),
  );

/** Returns the schema of an item with arguments and result attributes, such as a data source. */
export const lookupSchema = (
  description: string,
  args: readonly (Member & Pick<Given, "sensitive" | "computed">)[],
  results: readonly (Member & Pick<Given, "sensitive">)[],
): object =>
  block(description, [
    ...args.map((member) => {
      const { required, sensitive = false, computed = false } = member;
      const given = { ...(required ? { required } : { optional: true, computed }), sensitive };
      return schemaAttribute(member, given, (inner) => ({
        [inner.required ? "required" : "optional"]: true,
      }));
    }),
    ...results.map((member) =>
      schemaAttribute(member, { computed: true, sensitive: member.sensitive ?? false }, () => COMPUTED),
    ),
  ]);

const block = (description: string, attributes: readonly object[]) => ({
  version: 0,
  block: { version: 0, attributes, description },
});
