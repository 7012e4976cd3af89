import { type Sql, sql } from "../db/sql/sql.ts";
import type { IndexLookup, Table } from "./table.ts";

/** The sort order of a list. */
export interface Order {
  /** Sort keys. The last key is unique, so that each row is on exactly one page. */
  readonly by: readonly [Sql, Sql];
  readonly direction: "asc" | "desc";
}

/** A list that is read in pages. */
export interface SortedList {
  readonly table: Table;
  /** The columns to return. By default, the ids. */
  readonly columns?: Sql;
  /** Condition for the rows that the caller may see. */
  readonly visible: Sql;
  /** Condition for the rows of the list. It combines {@link visible} with the filter, if there is one. */
  readonly where: Sql;
  readonly sort: Order;
}

/** An index lookup, and the condition that the rows from the lookup must meet. */
interface Followed extends IndexLookup {
  readonly where: Sql;
}

/** The position of a page in the list. */
export interface PageRange {
  readonly offset: number;
  readonly limit: number;
}

/**
 * Maximum number of candidates. The candidates are the values that an index lookup finds. If the lookup finds more, the
 * query tests the filter on all rows instead.
 */
const CANDIDATES = 5000;

/** Returns a list with the reverse sort order. */
export const reversed = <R extends SortedList>(list: R): R => {
  const { by, direction } = list.sort;
  return { ...list, sort: { by, direction: direction === "asc" ? "desc" : "asc" } };
};

const orderBy = ([value, tieBreaker]: Order["by"], direction: Order["direction"]): Sql => {
  const way = direction === "asc" ? sql`ASC` : sql`DESC`;
  return sql`ORDER BY ${value} ${way}, ${tieBreaker} ${way}`;
};

const limited = ({ offset, limit }: PageRange): Sql => sql`LIMIT ${limit} OFFSET ${offset}`;

/**
 * Returns a query for a page of a list, in sort order. PostgreSQL computes all selected columns even for the rows
 * before the page. Therefore, for every page except the first, the query finds the ids of the page before it reads the
 * columns.
 * @param total a query for the number of all rows in the list. The number is returned in the additional column
 *   `listTotal`.
 */
export function sortedRows(list: SortedList, range: PageRange, total?: Sql): Sql {
  const { table, columns, where, sort } = list;
  const sorted = sql`FROM ${table.from} WHERE ${where} ${orderBy(sort.by, sort.direction)} ${limited(range)}`;
  if (columns === undefined) return sql`SELECT ${table.id} AS id${totalColumn(total)} ${sorted}`;
  if (range.offset === 0) return sql`SELECT ${columns}${totalColumn(total)} ${sorted}`;
  return columnsOf(list, sql`SELECT ${table.id} AS "pageId" ${sorted}`, total);
}

/**
 * Returns a query that first finds the rows that match a filter, and then sorts them. The database cannot predict that
 * a filter matches few rows, so it would otherwise scan all rows in sort order. The column `listTotal` contains the
 * number of matches.
 * @param most maximum number of matches to find
 */
export function foundThenSorted(
  list: SortedList,
  lookup: Followed | undefined,
  most: number,
  range: PageRange,
): Sql {
  const { table, where, sort } = list;
  const keys = sql`${table.id} AS "foundId", ${sort.by[0]} AS "sortValue", ${sort.by[1]} AS "tieBreaker"`;
  const found = lookup
    ? sql`SELECT ${keys} FROM followed CROSS JOIN candidates CROSS JOIN ${table.from}
          WHERE ${lookup.column} = candidate AND ${lookup.where}
        UNION ALL SELECT ${keys} FROM unfollowed CROSS JOIN ${table.from} WHERE ${where}`
    : sql`SELECT ${keys} FROM ${table.from} WHERE ${where}`;
  const order = orderBy([sql`"sortValue"`, sql`"tieBreaker"`], sort.direction);
  const ids = sql`SELECT "foundId" AS "pageId" FROM found ${order} ${limited(range)}`;
  const matches = sql`found AS MATERIALIZED (${found} LIMIT ${most})`;
  return sql`WITH ${lookup ? sql`${candidatesOf(lookup)}, ${matches}` : matches}
    ${columnsOf(list, ids, sql`SELECT COUNT(*) FROM found`)}`;
}

/**
 * Returns SQL for three temporary tables: `candidates`, `followed` and `unfollowed`. `candidates` contains the
 * candidates of an index lookup. If the query uses the lookup, `followed` has one row and `unfollowed` is empty.
 * Otherwise, `unfollowed` has one row and `followed` is empty. The database skips the part of the query that joins the
 * empty table.
 */
function candidatesOf({ candidates }: IndexLookup): Sql {
  return sql`candidates AS MATERIALIZED (${candidates} LIMIT ${CANDIDATES + 1}),
    followed AS (SELECT 1 WHERE (SELECT COUNT(*) FROM candidates) <= ${CANDIDATES}),
    unfollowed AS (SELECT 1 WHERE (SELECT COUNT(*) FROM candidates) > ${CANDIDATES})`;
}

/**
 * Returns a query for the columns of the rows on a page, in sort order. The query checks `visible` again, because ids
 * are unique only among the rows that the caller may see.
 * @param ids a query for the ids of the page, in a column `pageId`
 */
function columnsOf({ table, columns, visible, sort }: SortedList, ids: Sql, total: Sql | undefined): Sql {
  return sql`SELECT ${columns ?? sql`${table.id} AS id`}${totalColumn(total)} FROM (${ids}) AS page CROSS JOIN ${table.from}
    WHERE ${table.id} = page."pageId" AND (${visible}) ${orderBy(sort.by, sort.direction)}`;
}

const totalColumn = (query: Sql | undefined): Sql =>
  query === undefined ? sql`` : sql`, (${query}) AS "listTotal"`;
