import { readRows } from "../../db/readRows.ts";
import type { Services } from "../../services.ts";
import { filterSql } from "./conditionSql.ts";
import { checkCost } from "./filterCost.ts";
import { type Group, parseFilter } from "./parseFilter.ts";
import { type Sql, sql } from "./sql.ts";
import { fieldOf, type Table } from "./table.ts";

/** Order of a list. */
export interface Order {
  /** The last one tells rows apart: pages must neither repeat nor miss a row. */
  readonly by: readonly [Sql, Sql];
  readonly direction: "asc" | "desc";
}

/** Rows found by a filter that are counted and sorted after they were found: nothing need be looked for twice. */
const FEW = 1000;

/** From so many rows before a page on it is worth while to count first: the page may be nearer to the list's end. */
const DEEP = 10_000;

export interface ListRequest {
  /** Which rows the caller may see. */
  readonly where: Sql;
  readonly filter: string | undefined;
  /** How properties at the end of the filter are joined that no operator closes. */
  readonly trailing: Group["joinedBy"];
  readonly sort: Order;
  readonly page: number;
  readonly perPage: number;
}

/**
 * One page of a list: the ids of its rows, in order, and how many rows there are in all. The database filters,
 * sorts and counts; a list of any length costs the rows of one page here.
 * @throws InvalidError the filter is none, or costs too much
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
 * The same with columns of the rows instead of their ids: one statement less.
 * @param ofPage further ones that are worked out for the rows of the page alone, which are called `page` there
 * @throws InvalidError the filter is none, or costs too much
 */
export async function listColumns<Row>(
  services: Services,
  table: Table,
  columns: Sql,
  request: ListRequest,
  ofPage?: Sql,
): Promise<{ rows: Row[]; total: number }> {
  const { filter, page, perPage, sort } = request;
  const groups = filter === undefined ? [] : parseFilter(filter, request.trailing);
  checkCost(table, groups);
  const where = groups.length === 0 ? request.where : sql`(${request.where}) AND ${filterSql(table, groups)}`;
  const offset = (page - 1) * perPage;
  const read = <Read = Row>(rows: Sql, limit: number, skipped = offset) => {
    const page = sql`${rows} LIMIT ${limit} OFFSET ${skipped}`;
    return readRows<Read>(services.db, ofPage ? sql`SELECT page.*, ${ofPage} FROM (${page}) AS page` : page);
  };
  if (groups.length === 0 && offset >= DEEP) {
    const total = await count(services, table, where);
    const shown = Math.min(perPage, total - offset);
    if (shown <= 0) return { rows: [], total };
    if (offset <= total / 2)
      return { rows: await read(sortedRows(table, columns, where, sort), shown), total };
    const fromEnd = sortedRows(table, columns, where, reversed(sort));
    return { rows: (await read(fromEnd, shown, total - offset - shown)).reverse(), total };
  }
  if (groups.length === 0) {
    // One more than is shown tells whether the list ends here; then nothing need be counted.
    const rows = await read(sortedRows(table, columns, where, sort), perPage + 1);
    const isLastPage = rows.length <= perPage && (rows.length > 0 || offset === 0);
    const total = isLastPage ? offset + rows.length : await count(services, table, where);
    return { rows: rows.slice(0, perPage), total };
  }
  const found = await read<Row & { foundRows: number | bigint }>(
    foundThenSorted(table, columns, { visible: request.where, wanted: where }, sort),
    perPage,
  );
  const few = Number(found[0]?.foundRows ?? 0);
  if (few <= FEW && (few > 0 || offset === 0)) {
    return { rows: found.map(({ foundRows: _, ...row }) => row as Row), total: few };
  }
  const total = await count(services, table, where);
  if (offset >= total) return { rows: [], total };
  return { rows: await read(sortedRows(table, columns, where, sort), perPage), total };
}

async function count(services: Services, table: Table, where: Sql): Promise<number> {
  const [counted] = await readRows<{ total: number | bigint }>(
    services.db,
    sql`SELECT COUNT(*) AS total FROM ${table.from} WHERE ${where}`,
  );
  return Number(counted?.total ?? 0);
}

const directionSql = ({ direction }: Order): Sql => (direction === "asc" ? sql`ASC` : sql`DESC`);

const reversed = ({ by, direction }: Order): Order => ({
  by,
  direction: direction === "asc" ? "desc" : "asc",
});

function sortedRows(table: Table, columns: Sql, where: Sql, order: Order): Sql {
  const [value, tieBreaker] = order.by;
  const direction = directionSql(order);
  return sql`SELECT ${columns} FROM ${table.from} WHERE ${where}
    ORDER BY ${value} ${direction}, ${tieBreaker} ${direction}`;
}

/**
 * The database cannot know that a filter leaves few rows, and would go through all of them in their order. Ids are
 * unique only among the rows that the caller may see.
 */
function foundThenSorted(
  table: Table,
  columns: Sql,
  { visible, wanted }: { readonly visible: Sql; readonly wanted: Sql },
  order: Order,
): Sql {
  const [value, tieBreaker] = order.by;
  const direction = directionSql(order);
  return sql`WITH found AS MATERIALIZED
      (SELECT ${table.id} AS "foundId" FROM ${table.from} WHERE ${wanted} LIMIT ${FEW + 1})
    SELECT ${columns}, (SELECT COUNT(*) FROM found) AS "foundRows" FROM found CROSS JOIN ${table.from}
    WHERE ${table.id} = found."foundId" AND (${visible})
    ORDER BY ${value} ${direction}, ${tieBreaker} ${direction}`;
}

/** The rows in the order of the ids; one that was deleted since is left out. */
export function inOrder<T>(ids: readonly string[], rows: readonly T[], idOf: (row: T) => string): T[] {
  const byId = new Map(rows.map((row) => [idOf(row), row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** The field to sort by, else the default one; lists and large texts cannot be sorted by. */
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
