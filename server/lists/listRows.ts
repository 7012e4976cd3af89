import { providerOf, readRows, readWireRows, type Sql, sql, type WireRow } from "../db/sql/sql.ts";
import type { Services } from "../services.ts";
import { filterSql } from "./conditionSql.ts";
import {
  foundThenSorted,
  type Order,
  type PageRange,
  reversed,
  type SortedList,
  sortedRows,
} from "./pageSql.ts";
import { type Condition, type ConditionGroup, checkCost, parseFilter } from "./parseFilter.ts";
import { fieldOf, type IndexLookup, type Table } from "./table.ts";

/** Maximum number of rows that match a filter and that a single query finds, counts and sorts. */
const FEW = 1000;

/**
 * Smallest page offset at which the service counts the list before it reads the page. If the page is closer to the end
 * of the list, the service reads the page from the end.
 */
const DEEP = 10_000;

interface ListRequest {
  /** Condition for the rows that the caller may see. */
  readonly where: Sql;
  /**
   * A query that returns the number of rows that the caller may see. Set it only if it costs less than counting the
   * rows.
   */
  readonly counted?: Sql;
  readonly filter: string | undefined;
  /** Operator that joins the last properties of the filter if no operator follows them. */
  readonly trailing: ConditionGroup["joinedBy"];
  readonly sort: Order;
  readonly page: number;
  readonly perPage: number;
}

/**
 * Reads one page of a list. Returns the ids of the rows in order, and the total number of rows. The database filters,
 * sorts and counts, so this process holds only the rows of the page in memory.
 * @throws InvalidError the filter is malformed, or costs too much
 */
export async function listRows(
  services: Services,
  table: Table,
  request: ListRequest,
): Promise<{ ids: string[]; total: number }> {
  const { rows, total } = await readPage<{ id: string }>({ services, table }, request);
  return { ids: rows.map((row) => row.id), total };
}

/**
 * Reads one page of a list, like {@link listRows}, but returns columns of the rows instead of ids. Times are strings in
 * the API's format. The caller needs no second query.
 * @param columns the columns; the database computes them only for the rows of the page
 * @throws InvalidError the filter is malformed, or costs too much
 */
export function listColumns<Row>(
  services: Services,
  table: Table,
  columns: Sql,
  request: ListRequest,
): Promise<Page<WireRow<Row>>> {
  return readPage<WireRow<Row>>({ services, table, columns }, request);
}

interface Page<Row> {
  readonly rows: Row[];
  readonly total: number;
}

/** The database table of a list, and the columns to return. */
interface ListSource {
  readonly services: Services;
  readonly table: Table;
  readonly columns?: Sql;
}

/** A list, and the page that a client requests. */
interface Listing extends ListSource, SortedList {
  /** The query `counted` of {@link ListRequest}. Undefined if the request has a filter. */
  readonly counted: Sql | undefined;
  readonly range: PageRange;
}

/** A row that also contains the total number of rows in the list. */
type WithTotal<Row> = Row & { readonly listTotal: number | bigint };

function readPage<Row>(list: ListSource, request: ListRequest): Promise<Page<Row>> {
  const { filter, trailing, page, perPage, where, sort } = request;
  const groups = filter === undefined ? [] : parseFilter(filter, trailing);
  checkCost(list.table, groups);
  const range = { offset: (page - 1) * perPage, limit: perPage };
  const listing = { ...list, visible: where, where, sort, counted: request.counted, range };
  if (groups.length > 0) return filteredPage(listing, groups);
  if (range.offset >= DEEP) return deepPage(listing);
  return listing.counted === undefined ? uncountedPage(listing) : earlyPage(listing);
}

/** Reads the rows of a page and the total in one query. */
async function earlyPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { range, counted } = listing;
  const rows = await read<WithTotal<Row>>(listing, sortedRows(listing, range, counted));
  const [first] = rows;
  if (first !== undefined) return { rows, total: Number(first.listTotal) };
  return { rows, total: range.offset === 0 ? 0 : await count(listing) };
}

/**
 * Reads a page and one more row. If there is no further row, the list ends with this page, so the total is known
 * without counting.
 */
async function uncountedPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, limit } = listing.range;
  const rows = await read<Row>(listing, sortedRows(listing, { offset, limit: limit + 1 }));
  const isLastPage = rows.length <= limit && (rows.length > 0 || offset === 0);
  const total = isLastPage ? offset + rows.length : await count(listing);
  return { rows: rows.slice(0, limit), total };
}

/** Counts the list, and then reads the page from the start or the end of the list, whichever is closer. */
async function deepPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, limit } = listing.range;
  const total = await count(listing);
  const shown = Math.min(limit, total - offset);
  if (shown <= 0) return { rows: [], total };
  if (offset <= total / 2)
    return { rows: await read(listing, sortedRows(listing, { offset, limit: shown })), total };
  const range = { offset: total - offset - shown, limit: shown };
  const rows = await read<Row>(listing, sortedRows(reversed(listing), range));
  return { rows: rows.reverse(), total };
}

async function filteredPage<Row>(all: Listing, groups: readonly ConditionGroup[]): Promise<Page<Row>> {
  const { services, table, range, visible } = all;
  const provider = providerOf(services.db);
  const meeting = (filter: readonly ConditionGroup[]) =>
    sql`(${visible}) AND ${filterSql(provider, table, filter)}`;
  const listing = { ...all, where: meeting(groups), counted: undefined };
  const found = findLookup(table, groups);
  const lookup = found && { ...found.lookup, where: meeting(found.groups) };
  const rows = await read<WithTotal<Row>>(listing, foundThenSorted(listing, lookup, FEW + 1, range));
  const few = Number(rows[0]?.listTotal ?? 0);
  if (few <= FEW && (few > 0 || range.offset === 0)) return { rows, total: few };
  const total = await count(listing);
  if (range.offset >= total) return { rows: [], total };
  return { rows: await read(listing, sortedRows(listing, range)), total };
}

const read = <Row>({ services }: ListSource, query: Sql): Promise<Row[]> =>
  readWireRows<Row>(services.db, query);

async function count({ services, table, where, counted }: Listing): Promise<number> {
  const query = counted ?? sql`SELECT COUNT(*) FROM ${table.from} WHERE ${where}`;
  const [row] = await readRows<{ total: number | bigint }>(services.db, sql`SELECT (${query}) AS total`);
  return Number(row?.total ?? 0);
}

/** Returns the rows in the order of the ids. Rows that no longer exist are omitted. */
export function inOrder<T>(ids: readonly string[], rows: readonly T[], idOf: (row: T) => string): T[] {
  const byId = new Map(rows.map((row) => [idOf(row), row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** Returns the sort order for a field. Unknown fields, lists and large texts get the default order. */
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

/**
 * An index lookup that finds every row that matches a filter. The lookup may also find other rows. The conditions in
 * `groups` exclude these rows.
 */
interface FilterLookup {
  readonly lookup: IndexLookup;
  /** The conditions of the filter that the query must still test on the rows from the index lookup. */
  readonly groups: readonly ConditionGroup[];
}

/**
 * Returns an index lookup for one of the conditions that every matching row must meet. Returns undefined if none of
 * these conditions has an index.
 */
function findLookup(table: Table, groups: readonly ConditionGroup[]): FilterLookup | undefined {
  const binding = groups.filter(({ joinedBy, conditions }) => joinedBy === "and" || conditions.length === 1);
  for (const condition of binding.flatMap((group) => group.conditions)) {
    const lookup = lookupFor(table, condition);
    if (lookup) return { lookup, groups: isExact(condition) ? without(groups, condition) : groups };
  }
  return undefined;
}

function lookupFor(table: Table, { name, operator, value }: Condition): IndexLookup | undefined {
  if (operator !== "contains" && operator !== "eq") return undefined;
  const field = fieldOf(table, name);
  if (field?.type === "list") {
    // `contains` with a string matches part of an item, but the index supports only whole items.
    const item = Array.isArray(value) ? value[0] : operator === "eq" ? value : undefined;
    return typeof item === "string" ? field.lookup?.(item) : undefined;
  }
  return operator === "contains" && typeof value === "string" ? field?.lookup?.(value) : undefined;
}

/**
 * True if an index lookup for the condition finds only matching rows. This is the case if a list is compared with a
 * single item. A lookup in an index of texts can also find other rows.
 */
const isExact = ({ operator, value }: Condition): boolean =>
  operator === "eq" ? typeof value === "string" : Array.isArray(value) && value.length === 1;

const without = (groups: readonly ConditionGroup[], condition: Condition): ConditionGroup[] =>
  groups
    .map((group) => ({ ...group, conditions: group.conditions.filter((other) => other !== condition) }))
    .filter(({ conditions }) => conditions.length > 0);
