import { z } from "zod";

/** Matches the first word of a sentence that explains how to set a field's value, such as `Must` or `Defaults`. */
const ABOUT_SETTING = /^(Must|Defaults|Changing|Use|By default|Recorded)\b/;

/**
 * Returns the description of a field in data that users can only read. Omits the sentences that explain how to set the
 * field.
 */
export const readOnlyText = (description: string): string =>
  description
    .split(/(?<=\.)\s+(?=[A-Z])/)
    .filter((sentence) => !ABOUT_SETTING.test(sentence))
    .join(" ");

/** The subset of JSON Schema that the fields of resources and functions use. */
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

/** Returns the JSON Schema of the values that a program may set for a field. */
export const jsonSchema = (schema: z.ZodType): Schema => z.toJSONSchema(schema, { io: "input" }) as Schema;
