import { type Sql, sql } from "../db/sql/sql.ts";

/** The type of a field that has one value. */
type FieldType = "text" | "number" | "boolean" | "date";

/**
 * An index query that preselects rows for a condition. The query finds every row that meets the condition, and may also
 * find other rows.
 */
export interface IndexLookup {
  /**
   * A query that returns the distinct values of {@link column} in the preselected rows. It returns them in the column
   * `candidate`.
   */
  readonly candidates: Sql;
  readonly column: Sql;
}

/** A field that has one value. Null is treated as an absent value. */
export interface ValueField {
  readonly type: FieldType;
  readonly value: Sql;
  /**
   * The cost of reading the field. `column`: the field is a column of the row. `large`: the field is a text of several
   * kilobytes. `query`: a query of other tables computes the field.
   */
  readonly cost: "column" | "large" | "query";
  /**
   * Returns an index lookup that finds the rows whose text may contain the string `part`. Returns undefined if no index
   * supports this string. Omitted for a field without an index.
   */
  readonly lookup?: (part: string) => IndexLookup | undefined;
}

/** A list of strings that is stored in a separate table. */
export interface ListField {
  readonly type: "list";
  readonly cost: "query";
  /** The number of items in the row's list. */
  readonly size: Sql;
  readonly item: Sql;
  /** Returns SQL that is true if at least one item of the row's list meets a condition for {@link item}. */
  readonly some: (condition: Sql) => Sql;
  /** Returns an index lookup that finds the rows whose list contains an item. Omitted for a field without an index. */
  readonly lookup?: (item: string) => IndexLookup;
}

export type Field = ValueField | ListField;

/**
 * The database table of a list, and the fields by which clients can filter and sort the list. The keys of `fields` are
 * the names in the API.
 */
export interface Table {
  readonly from: Sql;
  /** The unique id of a row. */
  readonly id: Sql;
  readonly fields: Readonly<Record<string, Field>>;
}

/**
 * Returns the field that has a name. Returns undefined if the table does not have the field. The name may come from a
 * request.
 */
export const fieldOf = (table: Table, name: string): Field | undefined =>
  Object.hasOwn(table.fields, name) ? table.fields[name] : undefined;

export const column = (type: FieldType, table: string, name: string): ValueField => ({
  type,
  value: sql`${sql.column(table)}.${sql.column(name)}`,
  cost: "column",
});

/** Returns a field for a text of several kilobytes. Clients cannot search in such a field, or sort a list by it. */
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
 * Returns a field for items that are stored in a separate table.
 * @param from table of the items
 * @param owner condition that selects the items of the row
 * @param item column that contains the text of the item
 */
export const listOf = (from: Sql, owner: Sql, item: Sql): ListField => ({
  type: "list",
  cost: "query",
  size: sql`(SELECT COUNT(*) FROM ${from} WHERE ${owner})`,
  item,
  some: (condition) => sql`EXISTS (SELECT 1 FROM ${from} WHERE ${owner} AND ${condition})`,
});
