import type { Services } from "../../services.ts";
import { filterSql } from "./conditionSql.ts";
import { checkCost } from "./filterCost.ts";
import { type Group, parseFilter } from "./parseFilter.ts";
import { type Sql, sql } from "./sql.ts";
import { fieldOf, type Table } from "./table.ts";

export interface ListRequest {
  /** Which rows the caller may see. */
  readonly where: Sql;
  readonly filter: string | undefined;
  /** How properties at the end of the filter are joined that no operator closes. */
  readonly trailing: Group["joinedBy"];
  /** Order, ending with what tells rows apart: pages must neither repeat nor miss a row. */
  readonly sort: readonly Sql[];
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
  const rows = await services.db.$queryRaw<{ id: string }[]>(
    sql`SELECT ${table.id} AS id FROM ${table.from} WHERE ${where}
      ORDER BY ${sql.join(request.sort, ", ")} LIMIT ${perPage} OFFSET ${offset}`,
  );
  return { ids: rows.map((row) => row.id), total };
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
): Sql[] {
  const field = name === undefined ? undefined : fieldOf(table, name);
  const sortable = field !== undefined && field.type !== "list" && field.cost !== "large";
  const value = sortable ? field.value : fallback;
  const direction = order === "asc" ? sql`ASC` : sql`DESC`;
  return [sql`${value} ${direction}`, sql`${tieBreaker} ${direction}`];
}
