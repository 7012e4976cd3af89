import { type Sql, sql } from "../db/sql.ts";

/** What a field holds; `list` is an array of texts. */
export type FieldType = "text" | "number" | "boolean" | "date";

/** A field with one value; null counts as absent. */
export interface ValueField {
  readonly type: FieldType;
  readonly value: Sql;
  /** What reading it costs: a column of the row, a text of several kilobytes, a query in other tables. */
  readonly cost: "column" | "large" | "query";
}

/** An array of texts that another table holds. */
export interface ListField {
  readonly type: "list";
  readonly cost: "query";
  /** How many items the listed row has. */
  readonly size: Sql;
  readonly item: Sql;
  /** True where an item of the listed row meets a condition. */
  readonly some: (condition: Sql) => Sql;
}

export type Field = ValueField | ListField;

/** What a list can be filtered and sorted by: its rows, and its fields under the wire's names. */
export interface Table {
  readonly from: Sql;
  /** What tells the rows apart. */
  readonly id: Sql;
  readonly fields: Readonly<Record<string, Field>>;
}

/** The field of that name; names come from callers. */
export const fieldOf = (table: Table, name: string): Field | undefined =>
  Object.hasOwn(table.fields, name) ? table.fields[name] : undefined;

export const column = (type: FieldType, table: string, name: string): ValueField => ({
  type,
  value: sql`${sql.column(table)}.${sql.column(name)}`,
  cost: "column",
});

/** A text of several kilobytes: lists are neither searched nor sorted by it. */
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
 * @param from the table that holds the items
 * @param owner which of its rows belong to the listed row
 * @param item its column
 */
export const listOf = (from: Sql, owner: Sql, item: Sql): ListField => ({
  type: "list",
  cost: "query",
  size: sql`(SELECT COUNT(*) FROM ${from} WHERE ${owner})`,
  item,
  some: (condition) => sql`EXISTS (SELECT 1 FROM ${from} WHERE ${owner} AND ${condition})`,
});
