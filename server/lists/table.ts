import { type Sql, sql } from "../db/sql/sql.ts";

/** The type of a field with one value. */
type FieldType = "text" | "number" | "boolean" | "date";

/** Where an index leads: to all rows that meet a condition, and maybe to others. */
export interface Lead {
  /** A query for the values of {@link column} in those rows, each once, under the name `candidate`. */
  readonly candidates: Sql;
  readonly column: Sql;
}

/** A field with one value; null counts as absent. */
export interface ValueField {
  readonly type: FieldType;
  readonly value: Sql;
  /** The cost of reading it: a column of the row, a text of several kilobytes, a query of other tables. */
  readonly cost: "column" | "large" | "query";
  /** Leads to the rows whose text contains a part, if an index does. */
  readonly lead?: (part: string) => Lead | undefined;
}

/** An array of texts that another table holds. */
export interface ListField {
  readonly type: "list";
  readonly cost: "query";
  /** The number of the row's items. */
  readonly size: Sql;
  readonly item: Sql;
  /** True where one of the row's items meets a condition. */
  readonly some: (condition: Sql) => Sql;
  /** Leads to the rows that have an item, if an index does. */
  readonly lead?: (item: string) => Lead;
}

export type Field = ValueField | ListField;

/** The rows of a list, and the fields by which it can be filtered and sorted, under their wire names. */
export interface Table {
  readonly from: Sql;
  /** The unique id of a row. */
  readonly id: Sql;
  readonly fields: Readonly<Record<string, Field>>;
}

/** The field with a name, which may come from a caller. */
export const fieldOf = (table: Table, name: string): Field | undefined =>
  Object.hasOwn(table.fields, name) ? table.fields[name] : undefined;

export const column = (type: FieldType, table: string, name: string): ValueField => ({
  type,
  value: sql`${sql.column(table)}.${sql.column(name)}`,
  cost: "column",
});

/** A text of several kilobytes, by which lists can be neither searched nor sorted. */
export const largeText = (table: string, name: string): ValueField => ({
  ...column("text", table, name),
  cost: "large",
});

export const countOf = (query: Sql): ValueField => ({
  type: "number",
  value: sql`(${query})`,
  cost: "query",
});

/**
 * @param from table of the items
 * @param owner condition that an item belongs to the row
 * @param item column of the item's text
 */
export const listOf = (from: Sql, owner: Sql, item: Sql): ListField => ({
  type: "list",
  cost: "query",
  size: sql`(SELECT COUNT(*) FROM ${from} WHERE ${owner})`,
  item,
  some: (condition) => sql`EXISTS (SELECT 1 FROM ${from} WHERE ${owner} AND ${condition})`,
});
