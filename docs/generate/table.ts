import type { Schema } from "../../provider/model/jsonSchema.ts";

/** Returns a table in Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

/** Returns the type of a schema as the text of a table cell. */
export function typeName(schema: Schema): string {
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeName))].join(", ");
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(", ");
  if (schema.type === "array") return `set of ${typeName(schema.items ?? {})}`;
  return schema.type ?? "string";
}
