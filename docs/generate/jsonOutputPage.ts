import type { Definition } from "ts-json-schema-generator";
import { type JsonDocument, jsonDocuments, jsonSchemas } from "./jsonSchemas.ts";
import { table } from "./table.ts";

type Field = Definition | boolean;

function typeText(field: Field | undefined): string {
  if (field === undefined || typeof field === "boolean") return "anything";
  if (field.$ref !== undefined) return linked(field.$ref);
  if (field.const !== undefined) return `\`${JSON.stringify(field.const)}\``;
  if (field.enum) return field.enum.map((value) => `\`${value}\``).join(", ");
  if (field.anyOf) return field.anyOf.map(typeText).join(" or ");
  if (field.type === "array") return `list of ${typeText(field.items as Field)}`;
  if (field.type === "object" && field.additionalProperties) {
    return `object with values of ${typeText(field.additionalProperties)}`;
  }
  return [field.type].flat().join(" or ");
}

function linked(reference: string): string {
  const name = decodeURIComponent(reference.slice(reference.lastIndexOf("/") + 1));
  return `[${name}](#${name.toLowerCase()})`;
}

/**
 * Returns the table rows for the fields of a type. If a field is an object without a named type, or a list of such
 * objects, the object's fields get rows too.
 */
function rows({ properties = {}, required = [] }: Definition, prefix = ""): string[][] {
  return Object.entries(properties).flatMap(([name, field]) => {
    if (typeof field === "boolean") return [];
    const inner = unnamed(field);
    const optional = required.includes(name) ? "" : "optional";
    const path = `${prefix}${name}`;
    return [
      [`\`${path}\``, typeText(field), optional, (field.description ?? "").replaceAll("\n", " ")],
      ...(inner ? rows(inner, `${path}${field.type === "array" ? "[]" : ""}.`) : []),
    ];
  });
}

function unnamed(field: Definition): Definition | undefined {
  const objects = [field, field.items, ...(field.anyOf ?? [])].filter(
    (candidate): candidate is Definition => typeof candidate === "object" && "properties" in candidate,
  );
  return objects[0];
}

function definitionText(level: string, name: string, definition: Definition): string[] {
  const body = definition.properties
    ? table(["Field", "Type", "", "Meaning"], rows(definition))
    : `${typeText(definition)}.`;
  return [`${level} ${name}`, ...(definition.description ? [definition.description] : []), body];
}

function section({ file, type, command }: JsonDocument, known: Set<string>): string[] {
  const { definitions = {}, ...schema } = jsonSchemas().get(file) ?? {};
  const own = Object.entries(definitions).filter(([name]) => !known.has(name));
  for (const [name] of own) known.add(name);
  return [
    `## \`${command}\``,
    `Schema: [${file}](../../provider/schemas/${file}), \`@gatehouse-access/provider/schemas/${file}\`.`,
    ...definitionText("###", type, schema as Definition),
    ...own.flatMap(([name, definition]) => definitionText("###", name, definition as Definition)),
  ];
}

/** Returns the page about the JSON output of commands, generated from the TypeScript types. */
export function jsonOutputPage(note: string): string {
  const head = `# JSON of review, drift, coverage, policy tests, access and doctor

The JSON Schemas (draft 7) are part of the package \`@gatehouse-access/provider\`, in \`schemas/\`. They allow only the fields
of their own version of the package. Validate JSON with the schema of the version that printed it.

\`version\` increases when a field is removed, when a required field becomes optional, or when the type or the meaning of a
field changes. It does not increase for a new field, or for a new value of an enumeration (lint findings, kinds of objects).
Ignore unknown fields and values. Policy tests and access have no \`version\`. They follow the same rules in all minor
versions of the package.

\`policyTests\` of \`gatehouse preview --json\` contains a [TestedNamespace](#testednamespace).`;
  const known = new Set<string>();
  return [note, head, ...jsonDocuments.flatMap((document) => section(document, known))].join("\n\n");
}
