import { models } from "@gatehouse-access/sdk/contract";
import { z } from "zod";

/** A part of the OpenAPI document. */
export type Json = Record<string, unknown>;

/** Converts zod schemas to those of the OpenAPI document, and collects the named ones. */
export class Components {
  readonly schemas: Json = {};

  /** @param io whether clients send or receive the value: defaults and limits differ */
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
        // Descriptions, and the rules of refinements, are in zod's own registry, not in that of the models.
        Object.assign(jsonSchema, z.globalRegistry.get(zodSchema));
      },
    });
    for (const [name, definition] of Object.entries($defs ?? {})) this.schemas[name] = named(definition);
    return named(own);
  }
}

/** Removes the limits of a value that is replaced instead of refused: no client can run into them. */
function dropLimits(schema: z.core.JSONSchema.BaseSchema): void {
  delete schema.enum;
}

/** Rewrites references to named schemas from zod's place for these to OpenAPI's. */
function named(schema: object): Json {
  const text = JSON.stringify(schema, (key, value) =>
    key === "id" && typeof value === "string" ? undefined : value,
  );
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'));
}
