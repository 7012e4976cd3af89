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
  const { rows, total } = await pageOf<{ id: string }>({ services, table, read: readRows, request });
  return { ids: rows.map((row) => row.id), total };
}

/**
 * Like {@link listRows}, with columns of the rows instead of their ids, which saves a statement.
 * @param columns computed for the rows of the page only
 * @param read how the rows are read
 * @throws InvalidError the filter is malformed, or costs too much
 */
export function listColumns<Row>(
  services: Services,
  table: Table,
  columns: Sql,
  request: ListRequest,
  read: Reading = readRows,
): Promise<Page<Row>> {
  return pageOf<Row>({ services, table, columns, read, request });
}

type Reading = typeof readRows;

interface Page<Row> {
  readonly rows: Row[];
  readonly total: number;
}

/** A list that is asked for. */
interface List {
  readonly services: Services;
  readonly table: Table;
  /** Left out: the ids. */
  readonly columns?: Sql;
  readonly read: Reading;
  readonly request: ListRequest;
}

/** A requested page. */
interface Listing extends List {
  /** Condition of the listed rows. */
  readonly where: Sql;
  /** A query for their number, if that costs little. */
  readonly counted: Sql | undefined;
  /** Rows before the page. */
  readonly offset: number;
  readonly perPage: number;
}

/** A row with the number of all rows of the list. */
type Counted<Row> = Row & { readonly listTotal: number | bigint };

async function pageOf<Row>(list: List): Promise<Page<Row>> {
  const { filter, trailing, page, perPage, where, counted } = list.request;
  const groups = filter === undefined ? [] : parseFilter(filter, trailing);
  checkCost(list.table, groups);
  const listing = { ...list, perPage, offset: (page - 1) * perPage };
  if (groups.length > 0) {
    const filtered = sql`(${where}) AND ${filterSql(list.table, groups)}`;
    return filteredPage({ ...listing, where: filtered, counted: undefined });
  }
  const readPage = listing.offset >= DEEP ? deepPage : counted === undefined ? uncountedPage : earlyPage;
  return readPage({ ...listing, where, counted });
}

/** Reads the total with the rows. */
async function earlyPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, perPage, counted } = listing;
  const rows = await read<Counted<Row>>(listing, sortedRows(listing, offset, perPage, counted));
  const [first] = rows;
  if (first !== undefined) return { rows, total: Number(first.listTotal) };
  return { rows, total: offset === 0 ? 0 : await count(listing) };
}

/** Reads one row more than it returns: if there is none, the list ends here and need not be counted. */
async function uncountedPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, perPage } = listing;
  const rows = await read<Row>(listing, sortedRows(listing, offset, perPage + 1));
  const isLastPage = rows.length <= perPage && (rows.length > 0 || offset === 0);
  const total = isLastPage ? offset + rows.length : await count(listing);
  return { rows: rows.slice(0, perPage), total };
}

/** Reads the page from the nearer end of the list. */
async function deepPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, perPage } = listing;
  const total = await count(listing);
  const shown = Math.min(perPage, total - offset);
  if (shown <= 0) return { rows: [], total };
  if (offset <= total / 2) return { rows: await read(listing, sortedRows(listing, offset, shown)), total };
  const { sort } = listing.request;
  const fromEnd = { ...listing, request: { ...listing.request, sort: reversed(sort) } };
  const rows = await read<Row>(listing, sortedRows(fromEnd, total - offset - shown, shown));
  return { rows: rows.reverse(), total };
}

async function filteredPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, perPage } = listing;
  const found = await read<Counted<Row>>(listing, foundThenSorted(listing));
  const few = Number(found[0]?.listTotal ?? 0);
  if (few <= FEW && (few > 0 || offset === 0)) return { rows: found, total: few };
  const total = await count(listing);
  if (offset >= total) return { rows: [], total };
  return { rows: await read(listing, sortedRows(listing, offset, perPage)), total };
}

const read = <Row>({ read, services }: List, query: Sql): Promise<Row[]> => read<Row>(services.db, query);

async function count({ services, table, where, counted }: Listing): Promise<number> {
  const query = counted ?? sql`SELECT COUNT(*) FROM ${table.from} WHERE ${where}`;
  const [row] = await readRows<{ total: number | bigint }>(services.db, sql`SELECT (${query}) AS total`);
  return Number(row?.total ?? 0);
}

const reversed = ({ by, direction }: Order): Order => ({
  by,
  direction: direction === "asc" ? "desc" : "asc",
});

const orderBy = ([value, tieBreaker]: Order["by"], direction: Order["direction"]): Sql => {
  const way = direction === "asc" ? sql`ASC` : sql`DESC`;
  return sql`ORDER BY ${value} ${way}, ${tieBreaker} ${way}`;
};

/**
 * So many rows in their order. Of rows that are skipped PostgreSQL computes all columns, so the page's ids are found
 * before the columns, unless it is the first page.
 * @param total a query for the number of all rows, as a further column
 */
function sortedRows(listing: Listing, skipped: number, shown: number, total?: Sql): Sql {
  const { table, columns, where, request } = listing;
  const { by, direction } = request.sort;
  const sorted = sql`FROM ${table.from} WHERE ${where} ${orderBy(by, direction)} LIMIT ${shown} OFFSET ${skipped}`;
  if (columns === undefined) return sql`SELECT ${table.id} AS id${totalColumn(total)} ${sorted}`;
  if (skipped === 0) return sql`SELECT ${columns}${totalColumn(total)} ${sorted}`;
  return columnsOf(listing, columns, sql`SELECT ${table.id} AS "pageId" ${sorted}`, total);
}

/**
 * Finds the filter's matches before it sorts them. The database cannot know that a filter matches few rows, and would
 * walk through all rows in their order.
 */
function foundThenSorted(listing: Listing): Sql {
  const { table, columns, where, request, offset, perPage } = listing;
  const { by, direction } = request.sort;
  const sorted = sql`FROM found ${orderBy([sql`"sortValue"`, sql`"tieBreaker"`], direction)} LIMIT ${perPage} OFFSET ${offset}`;
  const page = columnsOf(
    listing,
    columns ?? sql`${table.id} AS id`,
    sql`SELECT "foundId" AS "pageId" ${sorted}`,
    sql`SELECT COUNT(*) FROM found`,
  );
  return sql`WITH found AS MATERIALIZED
      (SELECT ${table.id} AS "foundId", ${by[0]} AS "sortValue", ${by[1]} AS "tieBreaker" FROM ${table.from}
        WHERE ${where} LIMIT ${FEW + 1})
    ${page}`;
}

/**
 * The columns of a page's rows, in their order. Ids are unique only among the rows that the caller may see.
 * @param ids a query for the ids of the page, as `pageId`
 */
function columnsOf({ table, request }: Listing, columns: Sql, ids: Sql, total: Sql | undefined): Sql {
  const { by, direction } = request.sort;
  return sql`SELECT ${columns}${totalColumn(total)} FROM (${ids}) AS page CROSS JOIN ${table.from}
    WHERE ${table.id} = page."pageId" AND (${request.where}) ${orderBy(by, direction)}`;
}

const totalColumn = (query: Sql | undefined): Sql =>
  query === undefined ? sql`` : sql`, (${query}) AS "listTotal"`;

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
