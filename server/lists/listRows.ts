import { readRows } from "../db/readRows.ts";
import { type Sql, sql } from "../db/sql.ts";
import type { Services } from "../services.ts";
import { filterSql } from "./conditionSql.ts";
import { checkCost } from "./filterCost.ts";
import { type Group, parseFilter } from "./parseFilter.ts";
import { fieldOf, type Table } from "./table.ts";

/** Order of a list. */
export interface Order {
  /** Sort keys; the last one is unique, so that pages neither repeat nor miss a row. */
  readonly by: readonly [Sql, Sql];
  readonly direction: "asc" | "desc";
}

/** Up to this number of matches, a filtered list is counted and sorted from the matches, found only once. */
const FEW = 1000;

/** From this offset on the list is counted first, since the page may be nearer to its end. */
const DEEP = 10_000;

interface ListRequest {
  /** Condition of the rows that the caller may see. */
  readonly where: Sql;
  /** A query for the number of these rows, where there is a cheaper one than to count them. */
  readonly counted?: Sql;
  readonly filter: string | undefined;
  /** Operator for properties at the filter's end that no operator closes. */
  readonly trailing: Group["joinedBy"];
  readonly sort: Order;
  readonly page: number;
  readonly perPage: number;
}

/**
 * One page of a list: the ids of its rows, in order, and the total number of rows. The database filters, sorts and
 * counts, so that this process holds only the page's rows.
 * @throws InvalidError the filter is malformed, or costs too much
 */
export async function listRows(
  services: Services,
  table: Table,
  request: ListRequest,
): Promise<{ ids: string[]; total: number }> {
  const { rows, total } = await listColumns<{ id: string }>(services, table, sql`${table.id} AS id`, request);
  return { ids: rows.map((row) => row.id), total };
}

/**
 * Like {@link listRows}, with columns of the rows instead of their ids, which saves a statement.
 * @param ofPage additional columns, computed only for the rows of the page, whose alias is `page`
 * @throws InvalidError the filter is malformed, or costs too much
 */
export async function listColumns<Row>(
  services: Services,
  table: Table,
  columns: Sql,
  request: ListRequest,
  ofPage?: Sql,
): Promise<Page<Row>> {
  const { filter, page, perPage, sort } = request;
  const groups = filter === undefined ? [] : parseFilter(filter, request.trailing);
  checkCost(table, groups);
  const listing = { services, table, columns, ofPage, sort, offset: (page - 1) * perPage, perPage };
  if (groups.length > 0) {
    const where = sql`(${request.where}) AND ${filterSql(table, groups)}`;
    return filteredPage({ ...listing, where }, request.where);
  }
  const pageOf = listing.offset >= DEEP ? deepPage : earlyPage;
  return pageOf({ ...listing, where: request.where, counted: request.counted });
}

/** A requested page. */
interface Listing {
  readonly services: Services;
  readonly table: Table;
  readonly columns: Sql;
  readonly ofPage: Sql | undefined;
  /** Condition of the listed rows. */
  readonly where: Sql;
  /** See {@link ListRequest}. */
  readonly counted?: Sql | undefined;
  readonly sort: Order;
  /** Rows before the page. */
  readonly offset: number;
  readonly perPage: number;
}

interface Page<Row> {
  readonly rows: Row[];
  readonly total: number;
}

/** Reads one row more than it returns: if there is none, the list ends here and need not be counted. */
async function earlyPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, perPage } = listing;
  const rows = await read<Row>(listing, sortedRows(listing), perPage + 1);
  const isLastPage = rows.length <= perPage && (rows.length > 0 || offset === 0);
  const total = isLastPage ? offset + rows.length : await count(listing);
  return { rows: rows.slice(0, perPage), total };
}

/** Reads the page from the nearer end of the list. */
async function deepPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, perPage, sort } = listing;
  const total = await count(listing);
  const shown = Math.min(perPage, total - offset);
  if (shown <= 0) return { rows: [], total };
  if (offset <= total / 2) return { rows: await read(listing, sortedRows(listing), shown), total };
  const fromEnd = sortedRows({ ...listing, sort: reversed(sort) });
  const rows = await read<Row>(listing, fromEnd, shown, total - offset - shown);
  return { rows: rows.reverse(), total };
}

/** @param visible condition of the rows that the caller may see, without the filter */
async function filteredPage<Row>(listing: Listing, visible: Sql): Promise<Page<Row>> {
  const { offset, perPage } = listing;
  const found = await read<Row & { foundRows: number | bigint }>(
    listing,
    foundThenSorted(listing, visible),
    perPage,
  );
  const few = Number(found[0]?.foundRows ?? 0);
  if (few <= FEW && (few > 0 || offset === 0)) {
    return { rows: found.map(({ foundRows: _, ...row }) => row as Row), total: few };
  }
  const total = await count(listing);
  if (offset >= total) return { rows: [], total };
  return { rows: await read(listing, sortedRows(listing), perPage), total };
}

function read<Row>(
  { services, ofPage, offset }: Listing,
  rows: Sql,
  limit: number,
  skipped = offset,
): Promise<Row[]> {
  const page = sql`${rows} LIMIT ${limit} OFFSET ${skipped}`;
  return readRows<Row>(services.db, ofPage ? sql`SELECT page.*, ${ofPage} FROM (${page}) AS page` : page);
}

async function count({ services, table, where, counted }: Listing): Promise<number> {
  const query = counted ?? sql`SELECT COUNT(*) FROM ${table.from} WHERE ${where}`;
  const [row] = await readRows<{ total: number | bigint }>(services.db, sql`SELECT (${query}) AS total`);
  return Number(row?.total ?? 0);
}

function orderSql({ by: [value, tieBreaker], direction }: Order): Sql {
  const way = direction === "asc" ? sql`ASC` : sql`DESC`;
  return sql`ORDER BY ${value} ${way}, ${tieBreaker} ${way}`;
}

const reversed = ({ by, direction }: Order): Order => ({
  by,
  direction: direction === "asc" ? "desc" : "asc",
});

function sortedRows({ table, columns, where, sort }: Listing): Sql {
  return sql`SELECT ${columns} FROM ${table.from} WHERE ${where} ${orderSql(sort)}`;
}

/**
 * Finds the filter's matches before it sorts them. The database cannot know that a filter matches few rows, and would
 * walk through all rows in their order. Ids are unique only among the rows that the caller may see.
 */
function foundThenSorted({ table, columns, where, sort }: Listing, visible: Sql): Sql {
  return sql`WITH found AS MATERIALIZED
      (SELECT ${table.id} AS "foundId" FROM ${table.from} WHERE ${where} LIMIT ${FEW + 1})
    SELECT ${columns}, (SELECT COUNT(*) FROM found) AS "foundRows" FROM found CROSS JOIN ${table.from}
    WHERE ${table.id} = found."foundId" AND (${visible}) ${orderSql(sort)}`;
}

/** The rows in the order of the ids; rows deleted meanwhile are left out. */
export function inOrder<T>(ids: readonly string[], rows: readonly T[], idOf: (row: T) => string): T[] {
  const byId = new Map(rows.map((row) => [idOf(row), row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** The order by a field, else by the default one; lists and large texts cannot be sorted by. */
export function sortedBy(
  table: Table,
  name: string | undefined,
  fallback: Sql,
  order: "asc" | "desc" | undefined,
  tieBreaker: Sql,
): Order {
  const field = name === undefined ? undefined : fieldOf(table, name);
  const sortable = field !== undefined && field.type !== "list" && field.cost !== "large";
  const value = sortable ? field.value : fallback;
  return { by: [value, tieBreaker], direction: order ?? "desc" };
}
