import { z } from "zod";

/**
 * A setting of the service. Each setting is an environment variable. Most settings also have a flag of the command
 * `serve`. The flag overrides the variable.
 */
export interface Setting<T extends z.ZodType = z.ZodType> {
  readonly variable: string;
  /** Name of the flag. Undefined for a secret, because every user of the machine can read command-line arguments. */
  readonly flag?: string | undefined;
  /** Name of the flag's value in the help, for example `number` in `--port <number>`. */
  readonly value: string;
  readonly about: string;
  /** The allowed values. The text completes the sentence "it must be …". */
  readonly allowed: string;
  readonly fallback?: string;
  /**
   * True for a secret. Messages hide the value of a secret. The value can also be read from a file. The variable
   * `<variable>_FILE` contains the path of this file.
   * @default false
   */
  readonly secret?: boolean;
  /**
   * Returns the reason why the value is rejected as a flag. A value is rejected if it must not be visible in the
   * command line. Returns undefined for all other values.
   */
  readonly refusedAsFlag?: (text: string) => string | undefined;
  /** Schema that parses the string of the setting into the value that the service uses. */
  readonly schema: T;
}

/**
 * The definition of a setting in the table of settings. The variable is derived from the setting's name in this table.
 * The flag is also derived from the name, unless `flag` is set.
 */
type Row<T extends z.ZodType> = Omit<Setting<T>, "variable">;

/**
 * Returns its input. The function only checks the type of a setting's definition and preserves the type of its schema.
 */
export const row = <T extends z.ZodType>(input: Row<T>): Row<T> => input;

const words = (name: string, separator: string): string => name.replace(/[A-Z]/g, `${separator}$&`);

/**
 * Adds the variable and the flag to each setting of a table. For example, `dataDir` gets the variable
 * `GATEHOUSE_DATA_DIR` and the flag `--data-dir`.
 */
export const named = <T extends Readonly<Record<string, Row<z.ZodType>>>>(rows: T) =>
  Object.fromEntries(
    Object.entries(rows).map(([name, input]) => [
      name,
      {
        flag: `--${words(name, "-").toLowerCase()}`,
        ...input,
        variable: `GATEHOUSE_${words(name, "_").toUpperCase()}`,
      },
    ]),
  ) as { readonly [Name in keyof T]: T[Name] & { readonly variable: string } };

/** The allowed values of a setting, as text and as a schema. */
type Kind<T extends z.ZodType> = Pick<Setting<T>, "allowed" | "schema">;

/** A whole number of at most nine digits. */
const wholeNumber = z
  .string()
  .regex(/^-?\d{1,9}$/)
  .transform(Number);

/**
 * Returns the allowed values and the schema for a whole number.
 * @param bounds limits of the number, and its unit as a plural noun
 */
export function whole(
  bounds: { readonly min?: number; readonly max?: number; readonly unit?: string } = {},
): Kind<z.ZodType<number, string>> {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY, unit } = bounds;
  const from = bounds.max === undefined ? `, ${min} or more` : ` from ${min} to ${max}`;
  return {
    allowed: `a whole number${unit ? ` of ${unit}` : ""}${bounds.min === undefined ? "" : from}`,
    schema: wholeNumber.refine((number) => number >= min && number <= max),
  };
}

export const oneOf = <const T extends string>(...values: readonly T[]): Kind<z.ZodType<T>> => ({
  allowed: `${values.slice(0, -1).join(", ")}${values.length > 1 ? " or " : ""}${values.at(-1)}`,
  schema: z.enum(values),
});

export const onOff: Kind<z.ZodType<boolean>> = {
  allowed: "on or off",
  schema: z.enum(["on", "off"]).transform((text) => text === "on"),
};

export const optional = <T extends z.ZodType>({ allowed, schema }: Kind<T>) => ({
  allowed,
  schema: schema.optional(),
});
