import { providerText } from "../../engineMarks.ts";
import { jsonSchema, type ResourceDefinition, type Schema } from "../../resources/definition.ts";

/** The functions that the classes call, from the folder that the classes are written to. */
const CLASS_INPUTS = "../classInputs.ts";

/** How a field is written: what a program gives may be an output, and may be left out for its default. */
interface Form {
  readonly wrap: (type: string) => string;
  readonly withDefaults: boolean;
}

const INPUT: Form = { wrap: (type) => `pulumi.Input<${type}>`, withDefaults: true };
const OUTPUT: Form = { wrap: (type) => type, withDefaults: false };

/**
 * The TypeScript type of a schema.
 * @param fallback what is meant where a program leaves the value out
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

/** @throws Error naming a field without a description: the classes and the reference have nothing to say of it */
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

/** What the ids of a resource look like. */
export const idSentence = ({ id, idNote }: ResourceDefinition): string =>
  `Id: \`${id.text}\`${idNote === undefined ? "" : ` (${idNote})`}, for example \`${id.example}\`.`;

function classComment(definition: ResourceDefinition, example: string): string {
  const { name, description, id, inputs } = definition;
  const instead = inputs.adopt ? ", there `adopt: true` does the same" : "";
  return docComment([
    description,
    "",
    idSentence(definition),
    "",
    "@example",
    "```ts",
    ...example.split("\n"),
    "```",
    `@example An object that is there already is imported under the embedded engine; the Pulumi CLI cannot import dynamic resources${instead}.`,
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
  // An output is there only when it is named at registration; a required input always is.
  const unset = Object.entries({ ...kept, ...outputs })
    .filter(([property]) => !inputs[property]?.required)
    .map(([property]) => `${property}: undefined`)
    .join(", ");
  const ids = Object.entries(outputs)
    .filter(([, field]) => field.isId)
    .map(
      ([property]) =>
        `    // The id stays known while a preview plans an update; so must what is equal to it.\n    Object.assign(this, { ${property}: this.id });\n`,
    );
  const { tags } = definition;
  const gives =
    tags && "gives" in tags ? `    givesTags(this, { ...args }, "${tags.gives}", options);\n` : "";
  const secrets = Object.keys(outputs).filter((property) => outputs[property]?.secret);
  const type = `pulumi-nodejs:dynamic/gatehouse:${name}`;
  return `${classComment(definition, example)}export class ${name} extends pulumi.CustomResource {
${properties.join("\n")}

  constructor(name: string, args: ${name}Args, options?: pulumi.CustomResourceOptions) {
    const __provider = ${JSON.stringify(providerText(name))};
    const all = { ${unset}, ...args, ...identifying("${type}", name, options), __provider };
    super("${type}", name, all, ${optionsText(definition, secrets)});
${ids.join("")}${gives}  }

  /** True when the value is a ${name}, also one of another copy of this package. */
  static override isInstance(value: unknown): value is ${name} {
    const type = (value as { __pulumiType?: unknown } | undefined)?.__pulumiType;
    return type === "${type}";
  }
}`;
}

function optionsText({ name, tags }: ResourceDefinition, secrets: readonly string[]): string {
  const ordered = tags && "needs" in tags ? `afterTags({ ...args }, "${tags.needs}", options)` : "options";
  const added = {
    // A resource of the plugin becomes one of this class, and stays as it is.
    aliases: [{ type: `gatehouse:index:${name}` }],
    ...(secrets.length > 0 && { additionalSecretOutputs: secrets }),
  };
  return `pulumi.mergeOptions(${ordered}, ${JSON.stringify(added)})`;
}

/**
 * The source of the Pulumi classes of these resources.
 * @param exampleOf a program that shows the resource of this name
 * @throws Error naming a field that has no description
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
