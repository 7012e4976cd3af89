import { type Sql, sql } from "../db/sql/sql.ts";

/** The type of a field with one value. */
type FieldType = "text" | "number" | "boolean" | "date";

/**
 * A query of an index that preselects rows for a condition. It finds every row that meets the condition, and possibly
 * other rows.
 */
export interface IndexLookup {
  /** A query that returns the distinct values of {@link column} in the preselected rows, as the column `candidate`. */
  readonly candidates: Sql;
  readonly column: Sql;
}

/** A field with one value. A null value is treated as absent. */
export interface ValueField {
  readonly type: FieldType;
  readonly value: Sql;
  /**
   * The cost of reading the field. `column`: a column of the row. `large`: a text of several kilobytes. `query`: a
   * query of other tables.
   */
  readonly cost: "column" | "large" | "query";
  /**
   * Returns an index lookup that finds the rows whose text can contain a part, or undefined if no index supports the
   * part. A field without an index does not have this function.
   */
  readonly lookup?: (part: string) => IndexLookup | undefined;
}

/** An array of texts that is stored in another table. */
export interface ListField {
  readonly type: "list";
  readonly cost: "query";
  /** The number of items in the row's list. */
  readonly size: Sql;
  readonly item: Sql;
  /** Returns SQL that is true if at least one item of the row's list meets a condition on {@link item}. */
  readonly some: (condition: Sql) => Sql;
  /**
   * Returns an index lookup that finds the rows whose list contains an item. A field without an index does not have
   * this function.
   */
  readonly lookup?: (item: string) => IndexLookup;
}

export type Field = ValueField | ListField;

/** The database table of a list, and the fields by which clients can filter and sort the list, by wire name. */
export interface Table {
  readonly from: Sql;
  /** The unique id of a row. */
  readonly id: Sql;
  readonly fields: Readonly<Record<string, Field>>;
}

/** Returns the field with a name, or undefined if the table has no such field. The name may come from a request. */
export const fieldOf = (table: Table, name: string): Field | undefined =>
  Object.hasOwn(table.fields, name) ? table.fields[name] : undefined;

export const column = (type: FieldType, table: string, name: string): ValueField => ({
  type,
  value: sql`${sql.column(table)}.${sql.column(name)}`,
  cost: "column",
});

/** Returns a field for a text of several kilobytes. Clients cannot search or sort a list by such a field. */
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
 * Returns a field for the items of another table.
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
