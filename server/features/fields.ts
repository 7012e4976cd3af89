import { ZERO_DATE } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { ShownRow } from "../db/sql/sql.ts";
import { InvalidError } from "../errors.ts";
import { column as columnField, type Table } from "../lists/table.ts";
import type { Services } from "../services.ts";

// Converts between the fields of the API's objects, which the contract defines, and the columns that store the fields.
// A plain field has a column with the same name in camel case (`maxSessionMinutes` for `max_session_minutes`), and the
// type of the field determines the conversion. For all other fields, the feature contains the code of the conversion. A
// missing conversion is a compile error.

/** Name of the column that stores a plain field. */
type Column<Field> = Field extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Column<Tail>>}`
  : Field;

const columnOf = (field: string): string =>
  field.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** The value of a column if the field is absent. */
type Absent<Value> = undefined extends Value ? null : null extends Value ? null : never;

/** The types of columns that {@link presenter} converts to a field. An object or a list is stored as JSON. */
type Presentable<Value> =
  | Absent<Value>
  | (NonNullable<Value> extends boolean
      ? boolean
      : NonNullable<Value> extends number
        ? number | bigint
        : NonNullable<Value> extends string
          ? string | Date
          : string);

/** The type of column to which {@link columnsFrom} converts a field. */
type Stored<Value> =
  | Absent<Value>
  | (NonNullable<Value> extends boolean | number | string ? NonNullable<Value> : string);

type Presented<Row, Fields> = {
  [Field in keyof Fields]-?: Column<Field> extends keyof Row
    ? Row[Column<Field>] extends Presentable<Fields[Field]>
      ? Field
      : never
    : never;
}[keyof Fields];

type Plain<Row, Fields> = {
  [Field in keyof Fields]-?: Column<Field> extends keyof Row
    ? Stored<Fields[Field]> extends Row[Column<Field>]
      ? Field
      : never
    : never;
}[keyof Fields];

type Compute<Row, Value, Given extends readonly unknown[]> = (row: ShownRow<Row>, ...given: Given) => Value;

/**
 * Functions that compute the fields of an object. Required for fields that are not plain, and optional for plain
 * fields.
 */
type Computed<Row, Fields, Given extends readonly unknown[]> = {
  readonly [Field in Exclude<keyof Fields, Presented<Row, Fields>>]: Compute<Row, Fields[Field], Given>;
} & { readonly [Field in Presented<Row, Fields>]?: Compute<Row, Fields[Field], Given> };

/** The names of those fields in a request body that are not plain. */
type Excepted<Row, Fields> = { readonly [Field in Exclude<keyof Fields, Plain<Row, Fields>>]: true };

/** The columns for the plain fields of a request body. */
type Columns<Row, Fields> = {
  [Field in Plain<Row, Fields> as Column<Field> & keyof Row]: Row[Column<Field> & keyof Row];
};

type Values = Readonly<Record<string, unknown>>;

/**
 * Returns a function that converts a row to an object of the contract. The object contains only the fields of the
 * schema, and no other columns of the row.
 * @param computed functions that compute the fields that are not plain, from the row and the other arguments of a call
 */
export function presenter<Row, Schema extends z.ZodObject, Given extends readonly unknown[] = []>(
  schema: Schema,
  computed: Computed<Row, z.output<Schema>, Given>,
): Presenter<Row, Given, z.output<Schema>> {
  const functions = computed as Readonly<Record<string, (row: Values, ...given: Given) => unknown>>;
  const fields = Object.entries(schema.shape).map(([name, type]) => {
    const [compute, column] = [functions[name], columnOf(name)];
    if (compute !== undefined) return { name, read: compute };
    const present = presentation(type);
    return { name, read: (row: Values) => present(row[column]) };
  });
  const present = (row: ShownRow<Row>, ...given: Given) => {
    const object: Record<string, unknown> = {};
    for (const { name, read } of fields) object[name] = read(row as Values, ...given);
    return object as z.output<Schema>;
  };
  const listed = (table: string) => {
    const values = plainFields(schema, computed).flatMap(({ name, column, field }) => {
      const type = listedType(field);
      return type === undefined ? [] : [[name, columnField(type, table, column)] as const];
    });
    return Object.fromEntries(values);
  };
  return Object.assign(present, { listed });
}

/** The type of the function that {@link presenter} returns. */
export interface Presenter<Row, Given extends readonly unknown[], Fields> {
  (row: ShownRow<Row>, ...given: Given): Fields;
  /**
   * Returns the plain fields that have a single value. Clients can filter and sort a list of the table's rows by these
   * fields.
   */
  listed(table: string): Table["fields"];
}

/**
 * Returns the schema of the declared fields. The declared fields of an object are the fields that an update can change.
 * They are in the same order as in `settings`, because the revisions of objects depend on the order.
 */
export function declaredSchema<Shape extends z.ZodRawShape, Settings extends z.ZodRawShape>(
  object: z.ZodObject<Shape>,
  settings: z.ZodObject<Settings>,
): z.ZodObject<Pick<Shape, keyof Settings & keyof Shape>> {
  const names = Object.keys(settings.shape).filter((name) => name in object.shape);
  const shape = Object.fromEntries(names.map((name) => [name, object.shape[name]]));
  return z.object(shape as Pick<Shape, keyof Settings & keyof Shape>);
}

/**
 * Returns a function that converts the plain fields of a request body to columns. An absent field becomes null. Fields
 * outside the schema are ignored.
 * @param excepted the fields that are not plain
 */
export function columnsFrom<Row, Schema extends z.ZodObject>(
  schema: Schema,
  excepted: Excepted<Row, z.output<Schema>>,
): (body: z.output<Schema>) => Columns<Row, z.output<Schema>> {
  const fields = plainFields(schema, excepted);
  return (body) => {
    const columns = fields.map(({ name, column, store }) => [column, store((body as Values)[name] ?? null)]);
    return Object.fromEntries(columns);
  };
}

/**
 * Returns a function like {@link columnsFrom}, but for updates. The function returns no columns for absent fields, so
 * that an update does not change them.
 */
export function changesFrom<Row, Schema extends z.ZodObject>(
  schema: Schema,
  excepted: Excepted<Row, Required<z.output<Schema>>>,
): (body: z.output<Schema>) => Partial<Columns<Row, Required<z.output<Schema>>>> {
  const fields = plainFields(schema, excepted);
  return (body) => {
    const given = fields.filter(({ name }) => (body as Values)[name] !== undefined);
    const columns = given.map(({ name, column, store }) => [column, store((body as Values)[name])]);
    return Object.fromEntries(columns) as Partial<Columns<Row, Required<z.output<Schema>>>>;
  };
}

const plainFields = (schema: z.ZodObject, excepted: object) =>
  Object.entries(schema.shape)
    .filter(([name]) => !Object.hasOwn(excepted, name))
    .map(([name, field]) => ({ name, column: columnOf(name), field, store: storage(field) }));

/** Returns the type by which a list filters and sorts a field. Returns undefined for a list or an object. */
function listedType(field: z.core.$ZodType): "boolean" | "number" | "text" | "date" | undefined {
  const type = typeOf(field);
  if (type === "json" || type === "record") return undefined;
  return type === "text" && isTimeField(field) ? "date" : type;
}

function isTimeField(field: z.core.$ZodType): boolean {
  const { def } = (field as z.core.$ZodTypes)._zod;
  if (def.type === "optional" || def.type === "nullable") return isTimeField(def.innerType);
  return def.type === "string" && "format" in def && def.format === "datetime";
}

/**
 * Returns the type of the values of a field.
 * @throws Error plain fields cannot have this type
 */
function typeOf(field: z.core.$ZodType): "boolean" | "number" | "text" | "json" | "record" {
  const { def } = (field as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case "optional":
    case "nullable":
    case "default":
      return typeOf(def.innerType);
    case "pipe":
      return typeOf(def.out);
    case "boolean":
    case "number":
    case "record":
      return def.type;
    case "string":
    case "enum":
    case "literal":
      return "text";
    case "object":
    case "array":
      return "json";
    default:
      throw new Error(`a field of the type ${def.type} has no column`);
  }
}

/** Returns a function that converts a column to the value of a plain field. */
function presentation(field: z.core.$ZodType): (value: unknown) => unknown {
  const absent = isNullable(field) ? null : undefined;
  const convert = PRESENTATIONS[typeOf(field)];
  return (value) => (value === null ? absent : convert(value));
}

const parseJson = (value: unknown) => JSON.parse(String(value));

const PRESENTATIONS = {
  // SQLite stores a Boolean value as a number.
  boolean: Boolean,
  number: Number,
  text: (value: unknown) => (value instanceof Date ? value.toISOString() : value),
  json: parseJson,
  record: parseJson,
};

const isNullable = (field: z.core.$ZodType): boolean => {
  const { def } = (field as z.core.$ZodTypes)._zod;
  return def.type === "nullable" || (def.type === "optional" && isNullable(def.innerType));
};

/** Returns a function that converts the value of a plain field to a column. */
function storage(field: z.core.$ZodType): (value: unknown) => unknown {
  const type = typeOf(field);
  if (type === "json") return (value) => (value === null ? null : JSON.stringify(value));
  // The keys are sorted, so that a different order is not a change.
  if (type === "record") return (value) => (value === null ? null : JSON.stringify(sorted(value as object)));
  return (value) => value;
}

const sorted = (record: object) =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));

/**
 * Returns a time in wire format: RFC 3339 with exactly three fraction digits and `Z`. For null, returns the time that
 * represents "no date" (models section 0).
 * @param time must already be in wire format if it is a string
 */
export function wireDate(time: Date | string | null): string {
  if (time === null) return ZERO_DATE;
  return typeof time === "string" ? time : time.toISOString();
}

/** The latest time that both databases can store and compare as strings. The earliest time is 1970-01-01T00:00:00Z. */
export const LAST_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Returns the expiry time that an object has after an update. A time in the past is allowed: the access then ends
 * immediately.
 * @param field name of the field in the request
 * @param requested undefined keeps the stored time; null removes the time
 * @throws InvalidError the year of the time is not between 1970 and 9999
 */
export function updatedEnd(
  field: string,
  requested: string | null | undefined,
  stored: Date | null,
): Date | null {
  if (requested === undefined || requested === null) return requested === null ? null : stored;
  const end = new Date(requested);
  if (end.getTime() >= 0 && end.getTime() <= LAST_TIME) return end;
  throw new InvalidError(`${field} must be a time from 1970 to 9999`);
}

/**
 * Returns the expiry time of a new object.
 * @throws InvalidError the time is not in the future, or its year is after 9999
 */
export function newEnd(
  { accessTime }: Pick<Services, "accessTime">,
  field: string,
  requested: string | null | undefined,
): Date | null {
  const end = updatedEnd(field, requested, null);
  if (end !== null && end <= accessTime()) throw new InvalidError(`${field} must be in the future`);
  return end;
}
