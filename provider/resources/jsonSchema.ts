import { z } from "zod";

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
