import {
  type InputField,
  jsonSchema,
  type OutputField,
  type ResourceDefinition,
} from "../resources/definition.ts";
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

/** What an attribute of a resource is. */
export type Role =
  /** The resource's id. */
  | { readonly role: "id" }
  /** What a configuration declares. */
  | { readonly role: "input"; readonly field: InputField }
  /** What tells a run what to do, and is no part of the object. */
  | { readonly role: "instruction"; readonly field: InputField }
  /** What the service decides. */
  | { readonly role: "output"; readonly field: OutputField }
  /** A secret that a configuration chooses: no state or plan holds it. */
  | { readonly role: "secret"; readonly field: OutputField }
  /** A number that is counted up to give a new secret, whose change nobody can see. */
  | { readonly role: "secretVersion" };

/** An attribute of a resource in Terraform. */
export type Attribute = Member & Role;

/**
 * The attributes of a resource, from its definition. States of Terraform are in clear, so they hold no secret output: one
 * that a program may choose is an input that no state holds, the others are left out.
 */
export function attributesOf(definition: ResourceDefinition): readonly Attribute[] {
  const { id, idNote, inputs, outputs } = definition;
  const note = idNote === undefined ? "" : ` (${idNote})`;
  const all: Attribute[] = [
    { ...memberOf("id", `Its id: \`${id.text}\`${note}.`, STRING), role: "id" },
    ...Object.entries(inputs).map(([property, field]): Attribute => {
      const { description, required, transient } = field;
      const member = memberOf(property, description, typeOf(jsonSchema(field.schema)), required);
      return { ...member, role: transient ? "instruction" : "input", field };
    }),
    ...Object.entries(outputs).flatMap(([property, field]) => outputAttributes(property, field)),
  ];
  return all.map((attribute) => inWords(definition, attribute));
}

/** A value whose description, and those of what is in it, are in Terraform's words. */
function inWords<M extends Member>(definition: ResourceDefinition, member: M): M {
  const typeInWords = (type: Type): Type => {
    if (type.kind === "object") {
      return { ...type, members: type.members.map((inner) => inWords(definition, inner)) };
    }
    return "of" in type ? { ...type, of: typeInWords(type.of) } : type;
  };
  const description = describedInTerraform(member.description);
  return { ...member, description, type: typeInWords(member.type) };
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
        "The secret, needed to make one: a UUID of version 4 that no other has. It is in no state and no plan; give it from an ephemeral value, and keep it where the key is used.",
      role: "secret",
      field,
    },
    {
      ...chosen,
      name: `${chosen.name}_version`,
      property: `${property}Version`,
      type: { kind: "number" },
      description: `Any number; a change of it makes a new one with the secret that \`${chosen.name}\` has then.`,
      role: "secretVersion",
    },
  ];
}

/** How Terraform nests objects. */
const NESTING = { object: 1, list: 2, set: 3, map: 4 } as const;

/** Who gives a value. */
interface Given {
  readonly required?: boolean;
  readonly optional?: boolean;
  readonly computed?: boolean;
  readonly sensitive?: boolean;
  readonly writeOnly?: boolean;
}

/** An attribute in a schema of Terraform. @param memberGiven who gives the members in it */
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

/** Who gives an attribute, and the members in it. */
function givenBy(attribute: Attribute): readonly [Given, (member: Member) => Given] {
  switch (attribute.role) {
    case "id":
    case "output":
      return [COMPUTED, () => COMPUTED];
    case "instruction":
      // Computed, so that leaving it out again is no change.
      return [{ optional: true, computed: true }, () => ({ optional: true })];
    case "secret":
      return [{ optional: true, writeOnly: true, sensitive: true }, () => ({ optional: true })];
    case "secretVersion":
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

/** The schema of what takes arguments and gives results. */
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
