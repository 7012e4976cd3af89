import type { ResponseHeaders } from "./answer.ts";
import type { Operation } from "./contract/index.ts";

/** Most items a server puts on a page (rules section 6). */
export const MAX_PAGE_SIZE = 100;

/** One page as it came. */
interface Page<Item> {
  readonly headers: ResponseHeaders;
  readonly items: readonly Item[];
}

function totalOf(headers: ResponseHeaders): number | undefined {
  const text = headers["x-total-count"];
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/**
 * The items of a list, page after page, until `X-Total-Count` of them came; without that header, until a page
 * is not full. Items that are added or removed meanwhile can move others over a page's edge, and so be given
 * twice or not at all.
 */
export async function* iteratePages<Item>(
  operation: Pick<Operation, "query">,
  query: unknown,
  fetch: (query: Record<string, unknown>) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, undefined> {
  const asked = (query ?? {}) as { page?: number; perPage?: number; sortBy?: string };
  const perPage = asked.perPage ?? MAX_PAGE_SIZE;
  const sortable = "sort_by" in operation.query.shape && asked.sortBy === undefined;
  const firstPage = asked.page ?? 1;
  let seen = (firstPage - 1) * perPage;
  for (let page = firstPage; ; page += 1) {
    const { headers, items } = await fetch({
      ...(sortable && { sortBy: "name", orderBy: "asc" }),
      ...asked,
      perPage,
      page,
    });
    yield* items;
    seen += items.length;
    const total = totalOf(headers);
    const last = total === undefined ? items.length < perPage : seen >= total;
    if (items.length === 0 || last) {
      return;
    }
  }
}
