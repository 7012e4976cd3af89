import { expect, test } from "vitest";
import { start } from "./scriptedClient.ts";
import type { ScriptedServer, Step } from "./scriptedServer.ts";

/** Serves `names` as pages, at most `cap` a page. */
function pages(server: ScriptedServer, names: string[], more: { cap: number; total: boolean }) {
  server.always(({ path }): Step => {
    const query = new URL(path, server.url).searchParams;
    const perPage = Math.min(Number(query.get("per_page")), more.cap);
    const from = (Number(query.get("page")) - 1) * perPage;
    return {
      ...(more.total && { headers: { "x-total-count": String(names.length) } }),
      body: names.slice(from, from + perPage).map((name) => ({ name, created_at: "t" })),
    };
  });
}

test.each([
  [0, 1],
  [99, 1],
  [100, 1],
  [101, 2],
  [250, 3],
])("iterate reads %i items in %i requests", async (count, requests) => {
  const { server, client } = await start();
  const names = Array.from({ length: count }, (_, index) => `n${index}`);
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

test("iterate without a total stops at a page that is not full, and keeps the caller's sorting", async () => {
  const { server, client } = await start();
  pages(server, ["a", "b", "c"], { cap: 100, total: false });
  const query = { perPage: 2, sortBy: "created_at" };
  const seen: string[] = [];
  for await (const device of client.iterate("getDevices", { query })) {
    seen.push(device.name);
  }
  expect(seen).toEqual(["a", "b", "c"]);
  expect(server.requests.map((request) => request.path)).toEqual([
    "/api/devices?page=1&per_page=2&sort_by=created_at",
    "/api/devices?page=2&per_page=2&sort_by=created_at",
  ]);
});

test("iterate asks for the next page only when it is needed", async () => {
  const { server, client } = await start();
  pages(server, ["a", "b", "c"], { cap: 1, total: true });
  for await (const key of client.iterate("getPublicKeys", { query: { perPage: 1 } })) {
    expect(key.name).toBe("a");
    break;
  }
  expect(server.requests).toHaveLength(1);
});
