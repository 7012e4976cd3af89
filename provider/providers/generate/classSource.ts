import { providerText } from "../../engineMarks.ts";
import type { ResourceDefinition } from "../../model/definition.ts";
import { secretsOf } from "../../model/fields.ts";
import { jsonSchema, type Schema } from "../../model/jsonSchema.ts";

/** The path of the module whose functions the generated classes call, relative to the generated file. */
const CLASS_INPUTS = "../classInputs.ts";

/**
 * The form of the fields in generated code: of inputs or of outputs. The value of an input may be a Pulumi output. An
 * input with a default may be omitted.
 */
interface Form {
  readonly wrap: (type: string) => string;
  readonly withDefaults: boolean;
}

const INPUT: Form = { wrap: (type) => `pulumi.Input<${type}>`, withDefaults: true };
const OUTPUT: Form = { wrap: (type) => type, withDefaults: false };

/**
 * Returns the TypeScript type for a schema.
 * @param fallback the default for an omitted value
 */
function typeOf(schema: Schema, form: Form, indent: string, fallback?: unknown): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return [...new Set(schema.anyOf.map((part) => typeOf(part, form, indent)))].join(" | ");
  switch (schema.type) {
    case "string":
    case "boolean":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return `${parenthesized(form.wrap(typeOf(schema.items ?? {}, form, indent)))}[]`;
    case "object":
      return objectType(schema, form, indent, fallback);
    default:
      throw new Error(`no TypeScript type for ${JSON.stringify(schema)}`);
  }
}

const parenthesized = (type: string) => (type.includes(" | ") ? `(${type})` : type);

function objectType(schema: Schema, form: Form, indent: string, fallback: unknown): string {
  const { additionalProperties: values } = schema;
  if (!schema.properties && typeof values === "object") {
    return `{ [key: string]: ${form.wrap(typeOf(values, form, indent))} }`;
  }
  const inner = `${indent}  `;
  const defaults = (fallback ?? {}) as Readonly<Record<string, unknown>>;
  const members = Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const mark = schema.required?.includes(name) ? "" : "?";
    const type = member.not ? "never" : form.wrap(typeOf(member, form, inner));
    return `${fieldComment(name, member.description, form, inner, defaults[name])}${inner}${name}${mark}: ${type};`;
  });
  return `{\n${members.join("\n")}\n${indent}}`;
}

/**
 * Returns the doc comment for a field.
 * @throws Error if the field has no description
 */
function fieldComment(
  field: string,
  description: string | undefined,
  form: Form,
  indent: string,
  fallback?: unknown,
): string {
  if (!description?.trim()) throw new Error(`${field} needs a description`);
  const hasDefault = form.withDefaults && fallback !== undefined;
  return docComment([description, ...(hasDefault ? [`@default ${JSON.stringify(fallback)}`] : [])], indent);
}

function docComment(lines: readonly string[], indent = ""): string {
  const [first, ...others] = lines.map((line) => line.replaceAll("*/", "*\\/"));
  if (others.length === 0) return `${indent}/** ${first} */\n`;
  const starred = [first, ...others].map((line) => `${indent} * ${line}`.trimEnd());
  return `${indent}/**\n${starred.join("\n")}\n${indent} */\n`;
}

function argsInterface({ name, inputs }: ResourceDefinition): string {
  const members = Object.entries(inputs).map(
    ([input, { schema, description, required, default: fallback }]) => {
      const type = INPUT.wrap(typeOf(jsonSchema(schema), INPUT, "  ", fallback));
      return `${fieldComment(`${name}.${input}`, description, INPUT, "  ", fallback)}  ${input}${required ? "" : "?"}: ${type};`;
    },
  );
  return `/** Inputs of {@link ${name}}. */\nexport interface ${name}Args {\n${members.join("\n")}\n}`;
}

/** Returns a sentence about the form of a resource's ids. */
export const idSentence = ({ id, idNote }: ResourceDefinition): string =>
  `The ID of the resource is \`${id.text}\`${idNote === undefined ? "" : ` (${idNote})`}, for example \`${id.example}\`.`;

function classComment(definition: ResourceDefinition, example: string): string {
  const { name, description, id, inputs } = definition;
  const instead = inputs.adopt ? ": use `adopt: true` instead" : "";
  return docComment([
    description,
    "",
    idSentence(definition),
    "",
    "@example",
    "```ts",
    ...example.split("\n"),
    "```",
    `@example Import an existing object with the embedded engine. The Pulumi CLI cannot import dynamic resources${instead}.`,
    "```ts",
    `new ${name}("imported", args, { import: "${id.example}" });`,
    "```",
  ]);
}

function resourceClass(definition: ResourceDefinition, example: string): string {
  const { name, inputs, outputs } = definition;
  const kept = Object.fromEntries(Object.entries(inputs).filter(([, field]) => !field.transient));
  const properties = Object.entries({ ...kept, ...outputs }).map(
    ([property, field]) =>
      `${fieldComment(`${name}.${property}`, field.description, OUTPUT, "  ")}  declare readonly ${property}: pulumi.Output<${typeOf(jsonSchema(field.schema), OUTPUT, "  ")}>;`,
  );
  // Pulumi creates an output only if the constructor registers a property with the output's name. The generated code
  // therefore first sets all outputs and optional inputs to undefined. Required inputs are always among the arguments
  // of the constructor.
  const unset = Object.entries({ ...kept, ...outputs })
    .filter(([property]) => !inputs[property]?.required && !inputs[property]?.secret)
    .map(([property]) => `${property}: undefined`)
    .join(", ");
  const ids = Object.entries(outputs)
    .filter(([, field]) => field.isId)
    .map(
      ([property]) =>
        `    // The id stays known while a preview plans an update, so the output that equals it must too.\n    Object.assign(this, { ${property}: this.id });\n`,
    );
  const { tags } = definition;
  const gives =
    tags && "gives" in tags ? `    givesTags(this, { ...args }, "${tags.gives}", options);\n` : "";
  const secrets = secretsOf(definition);
  const secretInputs = secrets
    .filter((property) => inputs[property])
    .map((property) => `, ${property}: args.${property} && pulumi.secret(args.${property})`)
    .join("");
  const type = `pulumi-nodejs:dynamic/gatehouse:${name}`;
  return `${classComment(definition, example)}export class ${name} extends pulumi.CustomResource {
${properties.join("\n")}

  constructor(name: string, args: ${name}Args, options?: pulumi.CustomResourceOptions) {
    const __provider = ${JSON.stringify(providerText(name))};
    const all = { ${unset}, ...args${secretInputs}, ...identifying("${type}", name, options), __provider };
    super("${type}", name, all, ${optionsText(definition, secrets)});
${ids.join("")}${gives}  }

  /** Returns true if the value is a ${name}, even from another copy of this package. */
  static override isInstance(value: unknown): value is ${name} {
    const type = (value as { __pulumiType?: unknown } | undefined)?.__pulumiType;
    return type === "${type}";
  }
}`;
}

function optionsText({ name, tags }: ResourceDefinition, secrets: readonly string[]): string {
  const ordered = tags && "needs" in tags ? `afterTags({ ...args }, "${tags.needs}", options)` : "options";
  const added = {
    // With this alias, a program can change from the plugin to this class without changes to its resources.
    aliases: [{ type: `gatehouse:index:${name}` }],
    ...(secrets.length > 0 && { additionalSecretOutputs: secrets }),
  };
  return `pulumi.mergeOptions(${ordered}, ${JSON.stringify(added)})`;
}

/**
 * Returns the source code of the Pulumi classes for resource definitions.
 * @param exampleOf returns an example program for the resource with this name
 * @throws Error with the name of a field that has no description
 */
export function classSource(
  definitions: readonly ResourceDefinition[],
  exampleOf: (resource: string) => string,
): string {
  const parts = definitions.flatMap((definition) => [
    argsInterface(definition),
    resourceClass(definition, exampleOf(definition.name)),
  ]);
  return `import * as pulumi from "@pulumi/pulumi";\nimport { afterTags, givesTags, identifying } from "${CLASS_INPUTS}";\n\n${parts.join("\n\n")}\n`;
}
