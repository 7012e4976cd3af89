import { type Sql, sql } from "../db/sql/sql.ts";
import type { Lead, Table } from "./table.ts";

/** The sort order of a list. */
export interface Order {
  /** Sort keys. The last key is unique, so that pages neither repeat nor miss a row. */
  readonly by: readonly [Sql, Sql];
  readonly direction: "asc" | "desc";
}

/** A list that is read in pages. */
export interface SortedList {
  readonly table: Table;
  /** Default: the ids. */
  readonly columns?: Sql;
  /** Condition for the rows that the caller may see. */
  readonly visible: Sql;
  /** Condition for the listed rows among the visible rows. */
  readonly where: Sql;
  readonly sort: Order;
}

/** A lead, and the condition for the listed rows among the rows of the lead. */
interface Followed extends Lead {
  readonly where: Sql;
}

/** The range of list rows on a page. */
export interface PageRange {
  readonly offset: number;
  readonly limit: number;
}

/** Maximum number of candidates. A lead with more candidates is not followed. */
const CANDIDATES = 5000;

/** Returns the same list in reverse order. */
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
 * Returns a query for a page of the rows in their order. PostgreSQL computes all columns of skipped rows. Except on
 * the first page, the query therefore finds the ids of the page before it reads the columns.
 * @param total a query for the number of all rows, returned as the additional column `listTotal`
 */
export function sortedRows(list: SortedList, range: PageRange, total?: Sql): Sql {
  const { table, columns, where, sort } = list;
  const sorted = sql`FROM ${table.from} WHERE ${where} ${orderBy(sort.by, sort.direction)} ${limited(range)}`;
  if (columns === undefined) return sql`SELECT ${table.id} AS id${totalColumn(total)} ${sorted}`;
  if (range.offset === 0) return sql`SELECT ${columns}${totalColumn(total)} ${sorted}`;
  return columnsOf(list, sql`SELECT ${table.id} AS "pageId" ${sorted}`, total);
}

/**
 * Returns a query that finds the matches of the filter before it sorts them. The database cannot know that a filter
 * matches few rows, and would scan all rows in their order. The column `listTotal` contains the number of matches.
 * @param most maximum number of matches to find
 */
export function foundThenSorted(
  list: SortedList,
  lead: Followed | undefined,
  most: number,
  range: PageRange,
): Sql {
  const { table, where, sort } = list;
  const keys = sql`${table.id} AS "foundId", ${sort.by[0]} AS "sortValue", ${sort.by[1]} AS "tieBreaker"`;
  const found = lead
    ? sql`SELECT ${keys} FROM followed CROSS JOIN candidates CROSS JOIN ${table.from}
          WHERE ${lead.column} = candidate AND ${lead.where}
        UNION ALL SELECT ${keys} FROM unfollowed CROSS JOIN ${table.from} WHERE ${where}`
    : sql`SELECT ${keys} FROM ${table.from} WHERE ${where}`;
  const order = orderBy([sql`"sortValue"`, sql`"tieBreaker"`], sort.direction);
  const ids = sql`SELECT "foundId" AS "pageId" FROM found ${order} ${limited(range)}`;
  const matches = sql`found AS MATERIALIZED (${found} LIMIT ${most})`;
  return sql`WITH ${lead ? sql`${candidatesOf(lead)}, ${matches}` : matches}
    ${columnsOf(list, ids, sql`SELECT COUNT(*) FROM found`)}`;
}

/**
 * Returns the candidates of a lead, and two tables. `followed` has one row if the lead is followed, `unfollowed` has
 * one row if it is not. In a join, the empty table saves the database the rest of the work.
 */
function candidatesOf({ candidates }: Lead): Sql {
  return sql`candidates AS MATERIALIZED (${candidates} LIMIT ${CANDIDATES + 1}),
    followed AS (SELECT 1 WHERE (SELECT COUNT(*) FROM candidates) <= ${CANDIDATES}),
    unfollowed AS (SELECT 1 WHERE (SELECT COUNT(*) FROM candidates) > ${CANDIDATES})`;
}

/**
 * Returns a query for the columns of a page's rows, in their order. Ids are unique only among the rows that the
 * caller may see.
 * @param ids a query for the ids of the page, as `pageId`
 */
function columnsOf({ table, columns, visible, sort }: SortedList, ids: Sql, total: Sql | undefined): Sql {
  return sql`SELECT ${columns ?? sql`${table.id} AS id`}${totalColumn(total)} FROM (${ids}) AS page CROSS JOIN ${table.from}
    WHERE ${table.id} = page."pageId" AND (${visible}) ${orderBy(sort.by, sort.direction)}`;
}

const totalColumn = (query: Sql | undefined): Sql =>
  query === undefined ? sql`` : sql`, (${query}) AS "listTotal"`;
