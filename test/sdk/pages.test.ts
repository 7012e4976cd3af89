import { expect, test } from "vitest";
import type { Client, RequestOf } from "../../sdk/index.ts";
import { start } from "./scriptedClient.ts";
import type { ScriptedServer, Step } from "./scriptedServer.ts";

interface Serving {
  /** The largest number of items that a server returns on one page. */
  readonly cap: number;
  readonly total: boolean;
}

/**
 * Returns the page size and the index of the first item, as a server computes them from the query (rules section 6).
 */
function paging(query: URLSearchParams, cap: number) {
  const requested = Number(query.get("per_page"));
  const perPage = Math.min(Math.max(requested === 0 ? 10 : requested, 1), cap);
  return { perPage, from: (Math.max(Number(query.get("page")), 1) - 1) * perPage };
}

/** Returns a server's response function for a list of `names` in pages. */
function pages(server: ScriptedServer, names: readonly string[], { cap, total }: Serving) {
  server.always(({ path }): Step => {
    const { perPage, from } = paging(new URL(path, server.url).searchParams, cap);
    return {
      ...(total && { headers: { "x-total-count": String(names.length) } }),
      body: names.slice(from, from + perPage).map((name) => ({ name, created_at: "t" })),
    };
  });
}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

async function read(client: Client, query: RequestOf<"getDevices">["query"] = {}): Promise<string[]> {
  const names: string[] = [];
  for await (const device of client.iterate("getDevices", { query })) {
    names.push(device.name);
  }
  return names;
}

test.each([
  [0, 1],
  [99, 1],
  [100, 1],
  [101, 2],
  [250, 3],
])("iterate reads %i items in %i requests", async (count, requests) => {
  const { server, client } = await start();
  const names = numbered(count);
  pages(server, names, { cap: 100, total: true });
  const seen: string[] = [];
  for await (const device of client.iterate("getDevices")) {
    seen.push(device.name);
    expect(device.createdAt).toBe("t");
  }
  expect(seen).toEqual(names);
  expect(server.requests).toHaveLength(requests);
  expect(server.requests[0]?.path).toBe("/api/devices?page=1&per_page=100&sort_by=name&order_by=asc");
});

test("iterate() without a total stops at a page that is shorter than the previous page, and keeps the caller's sort order", async () => {
  const { server, client } = await start();
  pages(server, ["a", "b", "c"], { cap: 100, total: false });
  const query = { perPage: 2, sortBy: "created_at" };
  expect(await read(client, query)).toEqual(["a", "b", "c"]);
  expect(server.requests.map((request) => request.path)).toEqual([
    "/api/devices?page=1&per_page=2&sort_by=created_at",
    "/api/devices?page=2&per_page=2&sort_by=created_at",
  ]);
});

test("iterate() requests the next page only when the caller reads the next item", async () => {
  const { server, client } = await start();
  pages(server, ["a", "b", "c"], { cap: 1, total: true });
  for await (const key of client.iterate("getPublicKeys", { query: { perPage: 1 } })) {
    expect(key.name).toBe("a");
    break;
  }
  expect(server.requests).toHaveLength(1);
});

test.each([
  [{ perPage: 101 }, 0],
  [{ perPage: 1_000 }, 0],
  [{ perPage: 0 }, 0],
  [{ perPage: -3 }, 0],
  [{ page: 0 }, 0],
  [{ page: -2, perPage: 40 }, 0],
  [{ page: 2, perPage: 200 }, 100],
  [{ page: 3, perPage: 0 }, 20],
])("iterate returns each item of %j once, with and without a total", async (query, from) => {
  const { server, client } = await start();
  const names = numbered(130);
  for (const total of [true, false]) {
    pages(server, names, { cap: 100, total });
    expect(await read(client, query)).toEqual(names.slice(from));
  }
});

test.each([
  [{}, 0],
  [{ page: 2 }, 50],
  [{ page: 3 }, 100],
])("iterate returns all items of %j from a server with smaller pages", async (query, from) => {
  const { server, client } = await start();
  for (const count of [100, 150, 170]) {
    const names = numbered(count);
    for (const total of [true, false]) {
      pages(server, names, { cap: 50, total });
      expect(await read(client, query)).toEqual(names.slice(from));
    }
  }
});

test("iterate() without a total stops at an empty page if no page was shorter", async () => {
  const { server, client } = await start();
  pages(server, ["a", "b"], { cap: 100, total: false });
  expect(await read(client)).toEqual(["a", "b"]);
  expect(server.requests).toHaveLength(2);
});

test("iterate() stops after the first page of a server that has no pages and no total", async () => {
  const { server, client } = await start();
  server.always({ body: [{ name: "a" }, { name: "b" }] });
  expect(await read(client)).toEqual(["a", "b"]);
});
