import { models } from "@gatehouse-access/sdk/contract";
import { z } from "zod";

/** A part of the document. */
export type Json = Record<string, unknown>;

/** Turns zod schemas into those of the document, and collects the named ones. */
export class Components {
  readonly schemas: Json = {};

  /** @param io what clients send, or what they get: defaults and bounds differ */
  schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
    const {
      $schema: _,
      $defs,
      ...own
    } = z.toJSONSchema(schema, {
      io,
      metadata: models,
      unrepresentable: "any",
      override: ({ zodSchema, jsonSchema }) => {
        if (zodSchema._zod.def.type === "catch") dropLimits(jsonSchema);
        // Descriptions, and what refinements cannot tell, are in zod's own registry, not in that of the models.
        Object.assign(jsonSchema, z.globalRegistry.get(zodSchema));
      },
    });
    for (const [name, definition] of Object.entries($defs ?? {})) this.schemas[name] = named(definition);
    return named(own);
  }
}

/** A value that is replaced instead of being refused has no limits that a client could run into. */
function dropLimits(schema: z.core.JSONSchema.BaseSchema): void {
  delete schema.enum;
}

/** References to named schemas, from where zod puts these to where OpenAPI has them. */
function named(schema: object): Json {
  const text = JSON.stringify(schema, (key, value) =>
    key === "id" && typeof value === "string" ? undefined : value,
  );
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'));
}
