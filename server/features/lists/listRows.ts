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

/** Rows found by a filter that are sorted after they were found, which costs less than to look for them in order. */
const SORTED_AFTERWARDS = 1000;

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
  const { filter, page, perPage } = request;
  const groups = filter === undefined ? [] : parseFilter(filter, request.trailing);
  checkCost(table, groups);
  const where = groups.length === 0 ? request.where : sql`(${request.where}) AND ${filterSql(table, groups)}`;
  const [counted] = await services.db.$queryRaw<{ total: number | bigint }[]>(
    sql`SELECT COUNT(*) AS total FROM ${table.from} WHERE ${where}`,
  );
  const total = Number(counted?.total ?? 0);
  const offset = (page - 1) * perPage;
  if (offset >= total) return { ids: [], total };
  // A last page that is not full makes a search in order go on to the very end.
  const few = groups.length > 0 && total <= Math.min(offset + perPage, SORTED_AFTERWARDS);
  const ordered = few ? foundThenSorted(table, where, request.sort) : sortedRows(table, where, request.sort);
  const rows = await services.db.$queryRaw<{ id: string }[]>(
    sql`${ordered} LIMIT ${perPage} OFFSET ${offset}`,
  );
  return { ids: rows.map((row) => row.id), total };
}

const directionSql = ({ direction }: Order): Sql => (direction === "asc" ? sql`ASC` : sql`DESC`);

function sortedRows(table: Table, where: Sql, order: Order): Sql {
  const [value, tieBreaker] = order.by;
  const direction = directionSql(order);
  return sql`SELECT ${table.id} AS id FROM ${table.from} WHERE ${where}
    ORDER BY ${value} ${direction}, ${tieBreaker} ${direction}`;
}

/** The database cannot know that a filter leaves few rows, and would go through all of them in their order. */
function foundThenSorted(table: Table, where: Sql, order: Order): Sql {
  const [value, tieBreaker] = order.by;
  const direction = directionSql(order);
  return sql`WITH found AS MATERIALIZED
    (SELECT ${table.id} AS id, ${value} AS value, ${tieBreaker} AS tie FROM ${table.from} WHERE ${where})
    SELECT id FROM found ORDER BY value ${direction}, tie ${direction}`;
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
