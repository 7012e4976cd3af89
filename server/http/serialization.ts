import { z } from "zod";

type JsonSchema = z.core.JSONSchema.BaseSchema;

/**
 * The schema by which Fastify writes a response. Its serialiser is several times faster than zod's; it leaves
 * out keys that the contract does not have and refuses to write a body that misses one.
 */
export function responseSchema(schema: z.ZodType): JsonSchema {
  return shapeOf(z.toJSONSchema(schema, { io: "output", reused: "inline", unrepresentable: "any" }));
}

/**
 * Only the shape of a schema: checks of values (formats, patterns, limits) would cost time in every response,
 * and the tests compare responses with the whole contract instead.
 */
function shapeOf(schema: JsonSchema): JsonSchema {
  if (schema.anyOf) {
    const types = new Set(schema.anyOf.map((variant) => typeOf(variant as JsonSchema)));
    const [type] = types;
    if (types.size === 1 && type) return { type };
    return { anyOf: schema.anyOf.map((variant) => shapeOf(variant as JsonSchema)) };
  }
  if (schema.properties) {
    return {
      type: "object",
      properties: Object.fromEntries(
        Object.entries(schema.properties).map(([key, value]) => [key, shapeOf(value as JsonSchema)]),
      ),
      ...(schema.required && { required: schema.required }),
    };
  }
  // An object of any keys: Fastify's serialiser would leave all of them out.
  if (schema.additionalProperties) return {};
  if (schema.items) return { type: "array", items: shapeOf(schema.items as JsonSchema) };
  const type = typeOf(schema);
  return type ? { type } : {};
}

/** JSON type of a schema of one value, from what it says: a type, a constant or a list of constants. */
function typeOf(schema: JsonSchema): JsonSchema["type"] {
  if (schema.type) return schema.type;
  const example = schema.const ?? schema.enum?.[0];
  return example === undefined ? undefined : (typeof example as "string" | "number" | "boolean");
}
