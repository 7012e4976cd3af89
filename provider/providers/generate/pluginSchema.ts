import type { ResourceDefinition } from "../../model/definition.ts";
import type { InputField, OutputField } from "../../model/fields.ts";
import { jsonSchema, type Schema } from "../../model/jsonSchema.ts";
import { SETTINGS, type Setting, settingText } from "../../service/newConnection.ts";
import { OWN_PLUGIN } from "../../urn.ts";
import { capitalized } from "../../words.ts";
import { type PluginFunction, resultSchema } from "../functions.ts";
import { idSentence } from "./classSource.ts";

/** A property in the schema. */
interface Property {
  readonly [key: string]: unknown;
  readonly description?: string;
}

type Json = Readonly<Record<string, unknown>>;

/**
 * Example programs for a resource or function, by language. The keys are the language names in the Pulumi
 * documentation.
 */
type Examples = Readonly<Record<string, string>>;

/** The data from which the Pulumi schema is created. */
interface SchemaSources {
  readonly version: string;
  readonly definitions: readonly ResourceDefinition[];
  readonly functions: readonly PluginFunction[];
  /** Returns the example programs for the resource or function with this name. */
  readonly examplesOf: (name: string) => Examples;
  /** Returns the JSON Schema in a file of the package. */
  readonly schemaFile: (file: string) => Schema;
}

/** Returns the Pulumi schema of the package. The Pulumi CLI generates the SDK of each language from this schema. */
export function pulumiSchema({
  version,
  definitions,
  functions,
  examplesOf,
  schemaFile,
}: SchemaSources): Json {
  const types = new Types();
  const resources = definitions.map((definition) => [
    OWN_PLUGIN + definition.name,
    resourceOf(definition, types, examplesOf(definition.name)),
  ]);
  const all = functions.map((called) => [OWN_PLUGIN + called.name, functionOf(called, types, schemaFile)]);
  return {
    name: "gatehouse",
    displayName: "Gatehouse",
    version,
    description: "Access policy as code: manages SSH access to devices.",
    keywords: ["pulumi", "gatehouse", "category/infrastructure", "kind/native"],
    license: "Apache-2.0",
    publisher: "Gatehouse",
    meta: { moduleFormat: "(.*)" },
    language: {
      nodejs: { packageName: "@gatehouse-access/pulumi", respectSchemaVersion: true },
      python: { packageName: "pulumi_gatehouse", pyproject: { enabled: true }, respectSchemaVersion: true },
      go: { respectSchemaVersion: true },
      csharp: { respectSchemaVersion: true },
    },
    config: { variables: settingProperties() },
    provider: {
      description:
        "Configures the service, a credential and a namespace. Omitted arguments default to environment variables such as GATEHOUSE_URL and GATEHOUSE_TOKEN. The credential in the environment is used only if GATEHOUSE_URL is the address of the same service.",
      inputProperties: settingProperties(),
    },
    types: types.named(),
    resources: Object.fromEntries(resources),
    functions: Object.fromEntries(all),
  };
}

/**
 * Returns the settings of a provider instance. The schema contains no defaults from the environment: with such
 * defaults, the SDKs would send a credential from the environment to any address that a program sets. Instead, the
 * plugin itself reads the permitted settings from the environment.
 */
function settingProperties(): Json {
  return Object.fromEntries(
    Object.entries(SETTINGS as Readonly<Record<string, Setting>>).map(([name, setting]) => [
      name,
      { type: "string", description: settingText(setting), ...(setting.secret && { secret: true }) },
    ]),
  );
}

function resourceOf(definition: ResourceDefinition, types: Types, examples: Examples): Json {
  const { name, inputs, outputs } = definition;
  const lasting = Object.fromEntries(Object.entries(inputs).filter(([, field]) => !field.transient));
  const required = Object.keys(inputs).filter((input) => inputs[input]?.required);
  return {
    description: [
      definition.description,
      idSentence(definition),
      ...usage(examples),
      importText(definition),
    ].join("\n\n"),
    inputProperties: mapFields(inputs, (field, input) => inputProperty(`${name}.${input}`, field, types)),
    ...(required.length > 0 && { requiredInputs: required }),
    properties: {
      ...mapFields(lasting, (field, input) => stateProperty(`${name}.${input}`, field, types)),
      ...mapFields(outputs, (field, output) => stateProperty(`${name}.${output}`, field, types)),
    },
    required: [...Object.keys(lasting), ...Object.keys(outputs)],
    aliases: [{ type: `pulumi-nodejs:dynamic/gatehouse:${name}` }],
  };
}

const mapFields = <Field>(
  fields: Readonly<Record<string, Field>>,
  propertyOf: (field: Field, name: string) => Property,
): Readonly<Record<string, Property>> =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, propertyOf(field, name)]));

function inputProperty(path: string, field: InputField, types: Types): Property {
  const { default: fallback, description, replaces, secret } = field;
  const isPlain = ["string", "number", "boolean"].includes(typeof fallback);
  const note = fallback !== undefined && !isPlain ? ` Defaults to \`${JSON.stringify(fallback)}\`.` : "";
  return {
    ...types.of(jsonSchema(field.schema), path),
    description: `${described(path, description)}${note}`,
    ...(isPlain && { default: fallback }),
    ...(secret && { secret }),
    ...(replaces && { willReplaceOnChanges: true }),
  };
}

function stateProperty(path: string, field: InputField | OutputField, types: Types): Property {
  return {
    ...types.of(jsonSchema(field.schema), path),
    description: described(path, field.description),
    ...(field.secret && { secret: true }),
    ...("replaces" in field && field.replaces && { replaceOnChanges: true }),
  };
}

/**
 * Returns the description of a field.
 * @throws Error if the field has no description
 */
function described(path: string, description: string): string {
  if (!description.trim()) throw new Error(`${path} needs a description`);
  return description;
}

function usage(examples: Examples): string[] {
  const blocks = Object.entries(examples).map(([language, text]) => `\`\`\`${language}\n${text}\n\`\`\``);
  if (blocks.length === 0) return [];
  return [
    `{{% examples %}}\n## Example Usage\n{{% example %}}\n\n${blocks.join("\n\n")}\n\n{{% /example %}}\n{{% /examples %}}`,
  ];
}

const importText = ({ name, id }: ResourceDefinition) =>
  `## Import\n\nImport an existing object by its ID:\n\n\`\`\`sh\n$ pulumi import ${OWN_PLUGIN}${name} example ${id.example}\n\`\`\``;

function functionOf(called: PluginFunction, types: Types, schemaFile: SchemaSources["schemaFile"]): Json {
  const { name, description, args } = called;
  const { properties = {} } = jsonSchema(args);
  return {
    description,
    inputs: {
      type: "object",
      properties: Object.fromEntries(
        Object.entries(properties).map(([arg, schema]) => [
          arg,
          {
            ...types.of(schema, `${name}.${arg}`),
            description: described(`${name}.${arg}`, schema.description ?? ""),
          },
        ]),
      ),
    },
    outputs: { type: "object", ...types.membersOf(resultSchema(called, schemaFile), name) },
  };
}

/** Returns the singular form of a name. */
const singular = (name: string) => (/[^us]s$/.test(name) ? name.slice(0, -1) : name);

/**
 * The named types of the schema. The name of an object type or enumeration derives from its path, as in
 * `PublicKeyFilter`.
 */
class Types {
  readonly #named = new Map<string, Json>();
  #definitions: Readonly<Record<string, Schema>> = {};

  named(): Json {
    return Object.fromEntries([...this.#named].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /**
   * Returns the type of a value.
   * @param path the path of the value, which determines the name of the type
   * @throws Error if Pulumi has no type for the schema
   */
  of(given: Schema, path: string): Property {
    const schema = this.#resolved(given);
    if (schema.enum) return this.#name(path, enumeration(schema));
    if (typeof schema.const === "string") return { type: "string" };
    if (schema.anyOf) return this.#anyOf(schema.anyOf, path);
    switch (Array.isArray(schema.type) ? schema.type.find((type) => type !== "null") : schema.type) {
      case "string":
      case "boolean":
      case "integer":
      case "number":
        return {
          type: Array.isArray(schema.type) ? schema.type.find((type) => type !== "null") : schema.type,
        };
      case "array":
        return { type: "array", items: this.of(schema.items ?? {}, singular(path)) };
      case "object":
        return this.#object(schema, path);
      default:
        throw new Error(`${path}: no type for ${JSON.stringify(schema)}`);
    }
  }

  /** Returns the properties of an object, and the names of the required properties. */
  membersOf(given: Schema, path: string): Json {
    this.#definitions = { ...this.#definitions, ...given.definitions };
    const { properties = {}, required = [] } = this.#resolved(given);
    const members = Object.entries(properties).filter(([, member]) => !member.not);
    const always = required.filter((name) => !isNullable(this.#resolved(properties[name] ?? {})));
    return {
      properties: Object.fromEntries(
        members.map(([name, member]) => {
          const { description } = this.#resolved(member);
          return [name, { ...this.of(member, `${path}.${name}`), ...(description && { description }) }];
        }),
      ),
      ...(always.length > 0 && { required: always }),
    };
  }

  #resolved(schema: Schema): Schema {
    const { $ref, ...rest } = schema;
    const name = $ref?.split("/").at(-1);
    return name === undefined ? schema : { ...this.#definitions[name], ...rest };
  }

  #anyOf(given: readonly Schema[], path: string): Property {
    const parts = given.map((part) => this.#resolved(part)).filter(({ type }) => type !== "null");
    const [first, ...others] = parts;
    if (!first) throw new Error(`${path}: no type`);
    if (others.length === 0) return this.of(first, path);
    // A union of objects becomes one object with the properties of all variants. The plugin checks which properties can
    // be combined.
    if (parts.every(({ type }) => type === "object")) {
      const members = parts.flatMap(({ properties = {} }) =>
        Object.entries(properties).filter(([, { not }]) => !not),
      );
      return this.#object({ type: "object", properties: Object.fromEntries(members) }, path);
    }
    const types = [...new Set(parts.map((part) => JSON.stringify(this.of(part, path))))];
    const forms = types.map((text) => JSON.parse(text) as Property);
    return forms.length === 1 && forms[0] ? forms[0] : { oneOf: forms };
  }

  #object(schema: Schema, path: string): Property {
    const { additionalProperties: values, properties } = schema;
    if (!properties && typeof values === "object") {
      return { type: "object", additionalProperties: this.of(values, path) };
    }
    return this.#name(path, { type: "object", ...this.membersOf(schema, path) });
  }

  /**
   * Registers a named type.
   * @throws Error if two types with the same name differ
   */
  #name(path: string, type: Json): Property {
    const token = OWN_PLUGIN + path.split(".").map(capitalized).join("");
    const known = this.#named.get(token);
    if (known && JSON.stringify(known) !== JSON.stringify(type)) throw new Error(`${token}: two types`);
    this.#named.set(token, type);
    return { $ref: `#/types/${token}` };
  }
}

/** Returns the types that a schema allows. A nullable value has several types. */
const typesIn = ({ type = [] }: { readonly type?: string | readonly string[] }): readonly string[] =>
  [type].flat();

const isNullable = (schema: Schema): boolean =>
  typesIn(schema).includes("null") || (schema.anyOf ?? []).some(isNullable);

/**
 * Returns an enumeration. The values of a numeric enumeration also get names, because some languages require names.
 */
function enumeration({ enum: values = [] }: Schema): Json {
  const nameOf = (value: string | number) => {
    if (typeof value === "number") return value < 0 ? "Never" : `Days${value}`;
    return value
      .split(/[^A-Za-z0-9]+/)
      .map(capitalized)
      .join("");
  };
  return {
    type: typeof values[0] === "number" ? "integer" : "string",
    enum: values.map((value) => ({ value, name: nameOf(value) })),
  };
}
