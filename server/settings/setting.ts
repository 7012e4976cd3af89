import { z } from "zod";

/** One setting: an environment variable and, for most, a flag of `serve` that wins over it. */
export interface Setting<T extends z.ZodType = z.ZodType> {
  readonly variable: string;
  /** Missing for a secret: every user of the machine can read arguments. */
  readonly flag?: string | undefined;
  /** Name of the flag's value in the help. */
  readonly value: string;
  readonly about: string;
  /** The allowed values, as the end of the sentence "it must be …". */
  readonly allowed: string;
  readonly fallback?: string;
  /** Hides the value in messages, and allows a file that the variable `<variable>_FILE` names. @default false */
  readonly secret?: boolean;
  /** Why a value must not be given as a flag; undefined if it may. */
  readonly refusedAsFlag?: (text: string) => string | undefined;
  /** Parses the text to the value that the service uses. */
  readonly schema: T;
}

/** A setting without its names, which come from its name in the table. Only a secret has no flag. */
type Row<T extends z.ZodType> = Omit<Setting<T>, "variable">;

/** Gives a row of the table the type of its schema. */
export const row = <T extends z.ZodType>(input: Row<T>): Row<T> => input;

const words = (name: string, separator: string): string => name.replace(/[A-Z]/g, `${separator}$&`);

/** The settings of a table: `dataDir` is the variable `GATEHOUSE_DATA_DIR` and the flag `--data-dir`. */
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

/** What a setting may be, as text and as a schema. */
type Kind<T extends z.ZodType> = Pick<Setting<T>, "allowed" | "schema">;

/** A whole number of at most nine digits. */
const wholeNumber = z
  .string()
  .regex(/^-?\d{1,9}$/)
  .transform(Number);

/** A whole number, with its unit in the plural. */
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
