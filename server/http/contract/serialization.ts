import fastJsonStringify, { type Schema } from "fast-json-stringify";
import { z } from "zod";

type JsonSchema = z.core.JSONSchema.BaseSchema;
type Serializer = (body: unknown) => string;

const serializers = new WeakMap<z.ZodType, Serializer>();

/**
 * Returns the serializer of a response schema. The serializer is several times faster than zod. It omits keys that are
 * not in the contract, and throws if a body lacks a required key. It is compiled on first use, because compiling all
 * serializers takes a fifth of the start time and few instances use all of them.
 */
export function serializerOf(schema: z.ZodType): Serializer {
  return (body) => {
    let serializer = serializers.get(schema);
    if (serializer === undefined) {
      serializer = fastJsonStringify(responseSchema(schema) as Schema);
      serializers.set(schema, serializer);
    }
    return serializer(body);
  };
}

function responseSchema(schema: z.ZodType): JsonSchema {
  return shapeOf(z.toJSONSchema(schema, { io: "output", reused: "inline", unrepresentable: "any" }));
}

/**
 * Returns a schema without its format, pattern and limit checks, because these checks would slow down every response.
 * Tests compare responses with the complete contract instead.
 */
function shapeOf(schema: JsonSchema): JsonSchema {
  if (schema.anyOf) {
    const types = new Set(schema.anyOf.map((variant) => typeOf(variant as JsonSchema)));
    const [type] = types;
    if (types.size === 1 && type) return { type };
    const [value, ...others] = schema.anyOf.filter((variant) => typeOf(variant as JsonSchema) !== "null");
    // Use `nullable` here. With `anyOf`, the serializer would compile a validator of the variants and run it for each
    // response.
    if (value && others.length === 0) return { ...shapeOf(value as JsonSchema), nullable: true };
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
  // Objects with arbitrary keys need an empty schema. Otherwise Fastify's serializer would omit all keys.
  if (schema.additionalProperties) return {};
  if (schema.items) return { type: "array", items: shapeOf(schema.items as JsonSchema) };
  const type = typeOf(schema);
  return type ? { type } : {};
}

/**
 * Returns the JSON type of a schema for single values. If the schema declares no type, derives the type from its
 * constant or list of constants.
 */
function typeOf(schema: JsonSchema): JsonSchema["type"] {
  if (schema.type) return schema.type;
  const example = schema.const ?? schema.enum?.[0];
  return example === undefined ? undefined : (typeof example as "string" | "number" | "boolean");
}
