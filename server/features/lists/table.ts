import { type Sql, sql } from "./sql.ts";

/** What a field holds; `list` is an array of texts. */
export type FieldType = "text" | "number" | "boolean" | "date";

/** A field with one value; null counts as absent. */
export interface ValueField {
  readonly type: FieldType;
  readonly value: Sql;
}

/** An array of texts that another table holds. */
export interface ListField {
  readonly type: "list";
  readonly from: Sql;
  readonly owner: Sql;
  readonly item: Sql;
}

export type Field = ValueField | ListField;

/** What a list can be filtered and sorted by: its rows, and its fields under the wire's names. */
export interface Table {
  readonly from: Sql;
  /** What tells the rows apart. */
  readonly id: Sql;
  readonly fields: Readonly<Record<string, Field>>;
}

export const column = (type: FieldType, table: string, name: string): ValueField => ({
  type,
  value: sql`${sql.column(table)}.${sql.column(name)}`,
});

export const countOf = (query: Sql): ValueField => ({ type: "number", value: sql`(${query})` });

/**
 * @param from the table that holds the items
 * @param owner which of its rows belong to the listed row
 * @param item its column
 */
export const listOf = (from: Sql, owner: Sql, item: Sql): ListField => ({ type: "list", from, owner, item });
