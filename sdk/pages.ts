import { isDeepStrictEqual } from "node:util";
import type { ResponseHeaders } from "./answer.ts";
import type { Operation } from "./contract/index.ts";

/** Most items that a server puts on a page (rules section 6). */
const MAX_PAGE_SIZE = 100;

/** Items that a server puts on a page of size 0 (rules section 6). */
const DEFAULT_PAGE_SIZE = 10;

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** How many items the list has in all; undefined where the server does not say. */
  readonly total: number | undefined;
}

/** A page as the server sends it. */
interface Fetched<Item> {
  readonly headers: ResponseHeaders;
  readonly items: readonly Item[];
}

function totalOf(headers: ResponseHeaders): number | undefined {
  const text = headers["x-total-count"];
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** The page size that a server makes of `asked` (rules section 6). */
function pageSizeOf(asked: number): number {
  return asked === 0 ? DEFAULT_PAGE_SIZE : Math.min(Math.max(asked, 1), MAX_PAGE_SIZE);
}

/**
 * The pages of a list, one after the other, until as many items came as the header `X-Total-Count` says; without that
 * header, until a page is empty or shorter than the one before. `page` and `perPage` are moved into their bounds as
 * servers do (rules section 6). When items are added or removed meanwhile, others may move to the next or previous
 * page: such an item comes twice, or not at all.
 * @param query of the first page
 * @param fetch gets the page of a query
 */
export async function* iteratePages<Item>(
  operation: Pick<Operation, "query">,
  query: unknown,
  fetch: (query: Record<string, unknown>) => Promise<Fetched<Item>>,
): AsyncGenerator<Page<Item>, void, undefined> {
  const asked = (query ?? {}) as { page?: number; perPage?: number; sortBy?: string };
  const perPage = pageSizeOf(asked.perPage ?? MAX_PAGE_SIZE);
  const sortable = "sort_by" in operation.query.shape && asked.sortBy === undefined;
  const firstPage = Math.max(asked.page ?? 1, 1);
  let seen: number | undefined;
  let before: readonly Item[] = [];
  for (let page = firstPage; ; page += 1) {
    const { headers, items } = await fetch({
      ...(sortable && { sortBy: "name", orderBy: "asc" }),
      ...asked,
      perPage,
      page,
    });
    const total = totalOf(headers);
    // A server that knows no pages gives the same one for ever.
    if (items.length === 0 || (total === undefined && isDeepStrictEqual(items, before))) return;
    yield { items, total };
    // Pages that were left out are counted with the length of this one: a server may make them shorter than asked for.
    seen = (seen ?? (firstPage - 1) * items.length) + items.length;
    if (total === undefined ? items.length < before.length : seen >= total) return;
    before = items;
  }
}
