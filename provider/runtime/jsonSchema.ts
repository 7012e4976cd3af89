import { camelKey } from "@gatehouse-access/sdk";
import { z } from "zod";
import { HINTS } from "../resources/lookups.ts";
import type { PluginFunction } from "./functions.ts";

/** A JSON Schema, as far as the fields of resources and functions have it. */
export interface Schema {
  readonly type?: string;
  readonly enum?: readonly (string | number)[];
  readonly anyOf?: readonly Schema[];
  readonly not?: Schema;
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly $ref?: string;
  readonly definitions?: Readonly<Record<string, Schema>>;
}

/** The JSON Schema of what a program may give for a field. */
export const jsonSchema = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: "input" }) as Schema;

/**
 * What a function gives, as an object.
 * @param schemaFile gives the JSON Schema in a file of the package
 */
export function resultSchema(result: PluginFunction["result"], schemaFile: (file: string) => Schema): Schema {
  if ("file" in result) return schemaFile(result.file);
  const answered = inCamelCase(
    z.toJSONSchema(result.schema, { io: "output", unrepresentable: "any" }) as Schema,
  );
  const { property } = result;
  if (property === undefined) return answered;
  return { type: "object", properties: { [property]: answered }, required: [property] };
}

/** The schema of a value of the wire, as the client gives it. */
function inCamelCase(schema: Schema): Schema {
  const { properties, items, anyOf, required } = schema;
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties)
          .filter(([name]) => !HINTS.has(camelKey(name)))
          .map(([name, member]) => [camelKey(name), inCamelCase(member)]),
      ),
    }),
    ...(required && { required: required.map(camelKey) }),
    ...(items && { items: inCamelCase(items) }),
    ...(anyOf && { anyOf: anyOf.map(inCamelCase) }),
  };
}
