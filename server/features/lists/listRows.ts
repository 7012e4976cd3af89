import type { Services } from "../../services.ts";
import { filterSql } from "./conditionSql.ts";
import { type Group, parseFilter } from "./parseFilter.ts";
import { type Sql, sql } from "./sql.ts";
import type { Table } from "./table.ts";

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
 * @throws InvalidError the filter is none
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
 * The same with columns of the rows instead of their ids: one statement less where no other table is needed.
 * @throws InvalidError the filter is none
 */
export async function listColumns<Row>(
  services: Services,
  table: Table,
  columns: Sql,
  request: ListRequest,
): Promise<{ rows: Row[]; total: number }> {
  const { filter, page, perPage } = request;
  const groups = filter === undefined ? [] : parseFilter(filter, request.trailing);
  const where = groups.length === 0 ? request.where : sql`(${request.where}) AND ${filterSql(table, groups)}`;
  const offset = (page - 1) * perPage;
  // One more than is shown tells whether the list ends here; then nothing need be counted.
  const rows = await services.db.$queryRaw<Row[]>(
    sql`SELECT ${columns} FROM ${table.from} WHERE ${where}
      ORDER BY ${sql.join(request.sort, ", ")} LIMIT ${perPage + 1} OFFSET ${offset}`,
  );
  const isLastPage = rows.length <= perPage && (rows.length > 0 || offset === 0);
  const total = isLastPage ? offset + rows.length : await count(services, table, where);
  return { rows: rows.slice(0, perPage), total };
}

async function count(services: Services, table: Table, where: Sql): Promise<number> {
  const [counted] = await services.db.$queryRaw<{ total: number | bigint }[]>(
    sql`SELECT COUNT(*) AS total FROM ${table.from} WHERE ${where}`,
  );
  return Number(counted?.total ?? 0);
}

/** The rows in the order of the ids; one that was deleted since is left out. */
export function inOrder<T>(ids: readonly string[], rows: readonly T[], idOf: (row: T) => string): T[] {
  const byId = new Map(rows.map((row) => [idOf(row), row]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** The field to sort by, else the default one; a list field cannot be sorted by. */
export function sortedBy(
  table: Table,
  name: string | undefined,
  fallback: Sql,
  order: "asc" | "desc" | undefined,
  tieBreaker: Sql,
): Sql[] {
  const field = name !== undefined && Object.hasOwn(table.fields, name) ? table.fields[name] : undefined;
  const value = field === undefined || field.type === "list" ? fallback : field.value;
  const direction = order === "asc" ? sql`ASC` : sql`DESC`;
  return [sql`${value} ${direction}`, sql`${tieBreaker} ${direction}`];
}
