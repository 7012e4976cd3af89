import { readRows, type Sql, sql } from "../db/sql/sql.ts";
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
import { fieldOf, type Lead, type Table } from "./table.ts";

/** Maximum number of matches that a filtered list finds once, and then counts and sorts. */
const FEW = 1000;

/** From this offset on, the list is counted first, because the page may be closer to the end of the list. */
const DEEP = 10_000;

interface ListRequest {
  /** Condition for the rows that the caller may see. */
  readonly where: Sql;
  /** A query for the number of these rows, if a query exists that is cheaper than counting them. */
  readonly counted?: Sql;
  readonly filter: string | undefined;
  /** Operator for properties at the end of the filter that no operator closes. */
  readonly trailing: ConditionGroup["joinedBy"];
  readonly sort: Order;
  readonly page: number;
  readonly perPage: number;
}

/**
 * Reads one page of a list: the ids of its rows, in order, and the total number of rows. The database filters, sorts
 * and counts, so this process holds only the rows of the page.
 * @throws InvalidError the filter is malformed, or costs too much
 */
export async function listRows(
  services: Services,
  table: Table,
  request: ListRequest,
): Promise<{ ids: string[]; total: number }> {
  const { rows, total } = await readPage<{ id: string }>({ services, table, read: readRows }, request);
  return { ids: rows.map((row) => row.id), total };
}

/**
 * Reads one page of a list like {@link listRows}, with columns of the rows instead of their ids. This saves a
 * statement.
 * @param columns computed only for the rows of the page
 * @param read how the rows are read
 * @throws InvalidError the filter is malformed, or costs too much
 */
export function listColumns<Row>(
  services: Services,
  table: Table,
  columns: Sql,
  request: ListRequest,
  read: ReadRows = readRows,
): Promise<Page<Row>> {
  return readPage<Row>({ services, table, columns, read }, request);
}

type ReadRows = typeof readRows;

interface Page<Row> {
  readonly rows: Row[];
  readonly total: number;
}

/** The source of a list. */
interface ListSource {
  readonly services: Services;
  readonly table: Table;
  readonly columns?: Sql;
  readonly read: ReadRows;
}

/** A request for a page of a list. */
interface Listing extends ListSource, SortedList {
  /** See {@link ListRequest}; undefined if a filter selects rows. */
  readonly counted: Sql | undefined;
  readonly range: PageRange;
}

/** A row, with the total number of rows in the list. */
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

/** Reads one row more than it returns. If that row does not exist, the list ends with this page and needs no count. */
async function uncountedPage<Row>(listing: Listing): Promise<Page<Row>> {
  const { offset, limit } = listing.range;
  const rows = await read<Row>(listing, sortedRows(listing, { offset, limit: limit + 1 }));
  const isLastPage = rows.length <= limit && (rows.length > 0 || offset === 0);
  const total = isLastPage ? offset + rows.length : await count(listing);
  return { rows: rows.slice(0, limit), total };
}

/** Reads the page from the closer end of the list. */
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
  const { table, range, visible } = all;
  const meeting = (filter: readonly ConditionGroup[]) => sql`(${visible}) AND ${filterSql(table, filter)}`;
  const listing = { ...all, where: meeting(groups), counted: undefined };
  const found = findLead(table, groups);
  const lead = found && { ...found.lead, where: meeting(found.groups) };
  const rows = await read<WithTotal<Row>>(listing, foundThenSorted(listing, lead, FEW + 1, range));
  const few = Number(rows[0]?.listTotal ?? 0);
  if (few <= FEW && (few > 0 || range.offset === 0)) return { rows, total: few };
  const total = await count(listing);
  if (range.offset >= total) return { rows: [], total };
  return { rows: await read(listing, sortedRows(listing, range)), total };
}

const read = <Row>({ read, services }: ListSource, query: Sql): Promise<Row[]> =>
  read<Row>(services.db, query);

async function count({ services, table, where, counted }: Listing): Promise<number> {
  const query = counted ?? sql`SELECT COUNT(*) FROM ${table.from} WHERE ${where}`;
  const [row] = await readRows<{ total: number | bigint }>(services.db, sql`SELECT (${query}) AS total`);
  return Number(row?.total ?? 0);
}

/** Returns the rows in the order of the ids. Rows that were deleted in the meantime are omitted. */
export function inOrder<T>(ids: readonly string[], rows: readonly T[], idOf: (row: T) => string): T[] {
  const byId = new Map(rows.map((row) => [idOf(row), row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** Returns the order by a field. The default order applies to unknown fields, lists and large texts. */
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

/** A lead to all rows that a filter selects. */
interface FilterLead {
  readonly lead: Lead;
  /** The part of the filter that the rows of the lead must still match. */
  readonly groups: readonly ConditionGroup[];
}

/** Finds a lead for a filter. Returns undefined if no index covers a condition that all matching rows must meet. */
export function findLead(table: Table, groups: readonly ConditionGroup[]): FilterLead | undefined {
  const binding = groups.filter(({ joinedBy, conditions }) => joinedBy === "and" || conditions.length === 1);
  for (const condition of binding.flatMap((group) => group.conditions)) {
    const lead = leadTo(table, condition);
    if (lead) return { lead, groups: isExact(condition) ? without(groups, condition) : groups };
  }
  return undefined;
}

function leadTo(table: Table, { name, operator, value }: Condition): Lead | undefined {
  if (operator !== "contains" && operator !== "eq") return undefined;
  const field = fieldOf(table, name);
  if (field?.type === "list") {
    // `contains` with a string matches a part of an item, so the index of items has no lead for it.
    const item = Array.isArray(value) ? value[0] : operator === "eq" ? value : undefined;
    return typeof item === "string" ? field.lead?.(item) : undefined;
  }
  return operator === "contains" && typeof value === "string" ? field?.lead?.(value) : undefined;
}

/**
 * True if a lead finds only matching rows: a list condition with a single item. An index of texts can find more rows.
 */
const isExact = ({ operator, value }: Condition): boolean =>
  operator === "eq" ? typeof value === "string" : Array.isArray(value) && value.length === 1;

const without = (groups: readonly ConditionGroup[], condition: Condition): ConditionGroup[] =>
  groups
    .map((group) => ({ ...group, conditions: group.conditions.filter((other) => other !== condition) }))
    .filter(({ conditions }) => conditions.length > 0);
