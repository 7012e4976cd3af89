import { isDeepStrictEqual } from "node:util";
import type { ResponseHeaders } from "./answer.ts";
import type { Page } from "./clientTypes.ts";
import type { Operation } from "./contract/index.ts";

/** Maximum number of items on a page of a list (rules section 6). */
const MAX_PAGE_SIZE = 100;

/** Number of items on a page of a list if the requested page size is 0 (rules section 6). */
const DEFAULT_PAGE_SIZE = 10;

function totalOf(headers: ResponseHeaders): number | undefined {
  const text = headers["x-total-count"];
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/**
 * Yields the pages of a list. An empty list has one page, so that callers see whether the server sent the total 0. The
 * last page is the page with which the number of items reaches the header `X-Total-Count`. If the server does not send
 * this header, the last page is the first page that is empty or shorter than the previous page. The function limits
 * `page` and `perPage` to the range that servers accept (rules section 6). If another client adds or removes items
 * between two requests, an item may move to another page. The result then contains that item twice or not at all.
 * @param query the query of the first page
 * @param fetch requests the page of a query
 */
export async function* iteratePages<Item>(
  operation: Pick<Operation, "query">,
  query: unknown,
  fetch: (
    query: Record<string, unknown>,
  ) => Promise<{ readonly headers: ResponseHeaders; readonly items: readonly Item[] }>,
): AsyncGenerator<Page<Item>, void, undefined> {
  const requested = (query ?? {}) as { page?: number; perPage?: number; sortBy?: string };
  const wanted = requested.perPage ?? MAX_PAGE_SIZE;
  const perPage = wanted === 0 ? DEFAULT_PAGE_SIZE : Math.min(Math.max(wanted, 1), MAX_PAGE_SIZE);
  const sortable = "sort_by" in operation.query.shape && requested.sortBy === undefined;
  const firstPage = Math.max(requested.page ?? 1, 1);
  let seen: number | undefined;
  let before: readonly Item[] = [];
  for (let page = firstPage; ; page += 1) {
    const { headers, items } = await fetch({
      ...(sortable && { sortBy: "name", orderBy: "asc" }),
      ...requested,
      perPage,
      page,
    });
    const total = totalOf(headers);
    // A server without pagination returns the same page for every page number. Stop at the first repetition.
    const isFirst = page === firstPage;
    const isRepeated = !isFirst && total === undefined && isDeepStrictEqual(items, before);
    if (isRepeated || (items.length === 0 && !isFirst)) return;
    yield { items, total };
    if (items.length === 0) return;
    // If the iteration starts after page 1, the skipped items also count toward the total. Their number is calculated
    // from the length of this page, because a server may return shorter pages than requested.
    seen = (seen ?? (firstPage - 1) * items.length) + items.length;
    if (total === undefined ? items.length < before.length : seen >= total) return;
    before = items;
  }
}
