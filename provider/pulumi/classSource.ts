import { z } from "zod";
import type { ResourceDefinition } from "../resources/definition.ts";
import { providerText } from "./closure.ts";

interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly not?: Schema;
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly description?: string;
}

const jsonSchema = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: "input" }) as Schema;

/** A TypeScript type, `wrap` saying how each value that a program gives is wrapped. */
function typeOf(schema: Schema, wrap: (type: string) => string, indent: string): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return [...new Set(schema.anyOf.map((part) => typeOf(part, wrap, indent)))].join(" | ");
  switch (schema.type) {
    case "string":
    case "boolean":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return `${parenthesised(wrap(typeOf(schema.items ?? {}, wrap, indent)))}[]`;
    case "object":
      return objectType(schema, wrap, indent);
    default:
      throw new Error(`no TypeScript type for ${JSON.stringify(schema)}`);
  }
}

const parenthesised = (type: string) => (type.includes(" | ") ? `(${type})` : type);

function objectType(schema: Schema, wrap: (type: string) => string, indent: string): string {
  const { additionalProperties: values } = schema;
  if (!schema.properties && typeof values === "object") {
    return `{ [key: string]: ${wrap(typeOf(values, wrap, indent))} }`;
  }
  const inner = `${indent}  `;
  const members = Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const mark = schema.required?.includes(name) ? "" : "?";
    const type = member.not ? "never" : wrap(typeOf(member, wrap, inner));
    return `${comment(member.description, inner, name)}${inner}${name}${mark}: ${type};`;
  });
  return `{\n${members.join("\n")}\n${indent}}`;
}

/** @throws Error naming a field without a description: the classes and the reference have nothing to say of it */
function comment(text: string | undefined, indent: string, field: string): string {
  if (!text?.trim()) throw new Error(`${field} needs a description`);
  return `${indent}/** ${text.replaceAll("*/", "*\\/")} */\n`;
}

const input = (type: string) => `pulumi.Input<${type}>`;
const plain = (type: string) => type;

function argsInterface(definition: ResourceDefinition): string {
  const members = Object.entries(definition.inputs).map(([name, field]) => {
    const type = typeOf(jsonSchema(field.schema), input, "  ");
    return `${comment(field.description, "  ", `${definition.name}.${name}`)}  ${name}${field.required ? "" : "?"}: ${input(type)};`;
  });
  return `/** Inputs of {@link ${definition.name}}. */\nexport interface ${definition.name}Args {\n${members.join("\n")}\n}`;
}

function resourceClass(definition: ResourceDefinition): string {
  const { name, inputs, outputs } = definition;
  const kept = Object.fromEntries(Object.entries(inputs).filter(([, field]) => !field.transient));
  const properties = Object.entries({ ...kept, ...outputs }).map(
    ([property, field]) =>
      `${comment(field.description, "  ", `${name}.${property}`)}  declare readonly ${property}: pulumi.Output<${typeOf(jsonSchema(field.schema), plain, "  ")}>;`,
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
  return `/**
 * ${definition.description}
 *
 * Id: \`${definition.idFormat}\`.
 */
export class ${name} extends pulumi.CustomResource {
${properties.join("\n")}

  constructor(name: string, args: ${name}Args, options?: pulumi.CustomResourceOptions) {
    const __provider = ${JSON.stringify(providerText(name))};
    const all = { ${unset}, ...args, ...identifying("${type}", name, options), __provider };
    super("${type}", name, all, ${optionsOf(definition, secrets)});
${ids.join("")}${gives}  }

  /** True when the value is a ${name}, also one of another copy of this package. */
  static override isInstance(value: unknown): value is ${name} {
    const type = (value as { __pulumiType?: unknown } | undefined)?.__pulumiType;
    return type === "${type}";
  }
}`;
}

function optionsOf({ tags }: ResourceDefinition, secrets: readonly string[]): string {
  const ordered = tags && "needs" in tags ? `afterTags({ ...args }, "${tags.needs}", options)` : "options";
  if (secrets.length === 0) return ordered;
  return `pulumi.mergeOptions(${ordered}, { additionalSecretOutputs: ${JSON.stringify(secrets)} })`;
}

/**
 * The source of the Pulumi classes of these resources.
 * @throws Error naming a field that has no description
 */
export function classSource(definitions: readonly ResourceDefinition[]): string {
  const parts = definitions.flatMap((definition) => [argsInterface(definition), resourceClass(definition)]);
  return `import * as pulumi from "@pulumi/pulumi";\nimport { afterTags, givesTags, identifying } from "../program.ts";\n\n${parts.join("\n\n")}\n`;
}
