import { describe, expect, it } from "vitest";
import { listed } from "../../provider/resources/apiKey/heldKeys.ts";
import { apiKeys } from "../../provider/resources/apiKey/listing.ts";
import type { TenantClient } from "../../provider/service/connection.ts";
import { isUnreadable, Listing } from "../../provider/service/listings.ts";
import {
  AuthenticationError,
  type Client,
  NotFoundError,
  PermissionError,
  type RequestErrorDetails,
} from "../../sdk/index.ts";
import { iteratePages } from "../../sdk/pages.ts";

type Item = { readonly id: string };

const items = (count: number): Item[] => Array.from({ length: count }, (_, index) => ({ id: `${index}` }));

/** Returns a function that iterates the pages of a list like the client, with or without the total number of items. */
const pagesOf = (all: readonly Item[], total?: number) => () =>
  iteratePages({ query: { shape: {} } } as never, { perPage: 100 }, async (query) => {
    const start = (Number(query.page) - 1) * 100;
    const headers: Record<string, string> = total === undefined ? {} : { "x-total-count": `${total}` };
    return { headers, items: all.slice(start, start + 100) };
  });

/** Returns a list of items, which are also found one by one. */
const listingOf = (more: Partial<ConstructorParameters<typeof Listing<Item>>[0]>) =>
  new Listing<Item>({
    kind: "Item",
    keysOf: ({ id }) => [id],
    pages: pagesOf([]),
    look: () => Promise.reject(new Error("unexpected request for one object")),
    ...more,
  });

const notFound = (serverMessage?: string, isFromService = false) =>
  new NotFoundError("not found (404)", {
    operation: "getDevice",
    method: "GET",
    path: "/api/devices/1",
    outcome: "none",
    attempts: 1,
    isFromService,
    ...(serverMessage !== undefined && { serverMessage }),
  });

it("a list is unreadable without the permission, but not with an expired token", () => {
  const details: RequestErrorDetails = {
    operation: "listSshIdentities",
    method: "GET",
    path: "/api/ssh-identities",
    attempts: 1,
    outcome: "none",
    status: 401,
  };
  expect(isUnreadable(new PermissionError("permission denied (401)", details))).toBe(true);
  expect(isUnreadable(new AuthenticationError("the token expired (401)", details))).toBe(false);
});

describe("a list of objects", () => {
  it("resolves lookups that started before and after forget()", async () => {
    const listing = listingOf({ look: async (id) => ({ id }) });
    const before = listing.find("a");
    listing.forget();
    const after = listing.find("a");
    expect(await Promise.all([before, after])).toEqual([{ id: "a" }, { id: "a" }]);
  });

  it.each([undefined, 150])("is read completely, with a total of %s", async (total) => {
    const listing = listingOf({ pages: pagesOf(items(150), total) });
    const found = await Promise.all(items(150).map(({ id }) => listing.find(id)));
    expect(found).toEqual(items(150));
    expect(await listing.all()).toHaveLength(150);
  });

  it("is read only once, even if lookups start during the read", async () => {
    const proceed = Promise.withResolvers<void>();
    const reading = Promise.withResolvers<void>();
    let lists = 0;
    const listing = listingOf({
      pages: () => {
        lists += 1;
        const pages = pagesOf(items(150), 150)();
        let count = 0;
        return {
          async next() {
            count += 1;
            if (count === 1) {
              reading.resolve();
              await proceed.promise;
            }
            return pages.next();
          },
        };
      },
    });
    const first = Promise.all(items(10).map(({ id }) => listing.find(id)));
    await reading.promise;
    const second = listing.find("149");
    proceed.resolve();
    expect(await first).toEqual(items(10));
    expect(await second).toEqual({ id: "149" });
    expect(lists).toBe(1);
  });

  describe("with a 404 for one object", () => {
    const listing = (listed: readonly Item[], error: Error, requireReadable = async () => {}) =>
      listingOf({
        pages: pagesOf(listed, listed.length),
        look: () => Promise.reject(error),
        requireReadable,
      });

    it("returns undefined without a list if the service proves its 404", async () => {
      const unread = () => Promise.reject(new Error("unexpected list"));
      expect(await listing([], notFound("no such device", true), unread).find("0")).toBeUndefined();
    });

    it.each([undefined, "no Route matched with those values"])(
      "reads the list if the 404 has the message %s: an object that the list omits does not exist",
      async (message) => {
        expect(await listing(items(1), notFound(message)).find("other")).toBeUndefined();
        const found = listing(items(1), notFound(message)).find("0");
        await expect(found).rejects.toMatchObject({ code: "doubtful_answer" });
      },
    );

    it("accepts an empty list only if its length is 0", async () => {
      expect(await listing([], notFound()).find("0")).toBeUndefined();
      const unknown = listingOf({
        async *pages() {
          yield { items: [], total: undefined };
        },
        look: () => Promise.reject(notFound()),
      });
      await expect(unknown.find("0")).rejects.toMatchObject({ code: "doubtful_answer" });
      await expect(unknown.all()).rejects.toMatchObject({ code: "doubtful_answer" });
    });

    it("reads the list again if objects moved between its pages", async () => {
      let reads = 0;
      const moving = listingOf({
        async *pages() {
          reads += 1;
          yield { items: items(2), total: 4 };
          yield {
            items: reads === 1 ? [{ id: "3" }] : [{ id: "2" }, { id: "3" }],
            total: reads === 1 ? 3 : 4,
          };
        },
        look: () => Promise.reject(notFound()),
      });
      await expect(moving.find("2")).rejects.toMatchObject({ code: "doubtful_answer" });
      expect(reads).toBe(2);
    });

    it("fails if the 404 is empty and the namespace is not readable", async () => {
      const refuse = () => Promise.reject(new Error("no namespace"));
      await expect(listing([], notFound(), refuse).find("0")).rejects.toThrow("no namespace");
    });
  });
});

it("finds the API key in a state by its creation time and name, and rejects two keys with the same creation time", async () => {
  const creation = { createdAt: "2026-11-23T07:00:00.000Z", createdBy: "507f1f77bcf86cd799439011" };
  const [first, second] = ["first", "second"].map((name) => ({ ...creation, id: "", name }));
  const keys = [first, second] as Item[];
  const client = {
    pages: pagesOf(keys),
    async *iterate() {
      yield* keys;
    },
  } as unknown as Client;
  const listing = new Listing(apiKeys(client, ""));
  const opened = { listing: () => listing } as unknown as TenantClient;
  expect(await listed(opened, { ...creation, name: "first" })).toBe(first);
  expect(await listed(opened, { ...creation, name: "second" })).toBe(second);
  await expect(listed(opened, { ...creation, name: "renamed" })).rejects.toThrow(
    /created in the same millisecond/,
  );
});

describe("an object that the run changed", () => {
  type Named = { readonly id: string; readonly name: string; readonly tag?: string };
  const served: Named[] = [
    { id: "1", name: "old" },
    { id: "2", name: "taken" },
  ];
  const devices = () =>
    new Listing<Named>({
      kind: "Device",
      keysOf: ({ id, name }) => [id, `name ${name}`],
      pages: async function* pages() {
        yield { items: served, total: served.length };
      },
      look: async (key) => served.find(({ id, name }) => key === id || key === `name ${name}`),
    });

  it("is returned with its new values for all lookup keys, and in the list", async () => {
    const listing = devices();
    await listing.find("name old");
    await listing.all();
    const before = listing.find("1");
    listing.change("1", { name: "new" });
    listing.change("1", { tag: "prod" }, ["name new"]);
    const changed = { id: "1", name: "new", tag: "prod" };
    expect(
      await Promise.all([before, ...["1", "name old", "name new"].map((key) => listing.find(key))]),
    ).toEqual([changed, changed, changed, changed]);
    expect(await listing.all()).toEqual([changed, { id: "2", name: "taken" }]);
    listing.put({ id: "1", name: "newer" });
    expect(await listing.find("name old")).toEqual({ id: "1", name: "newer" });
  });

  it("is found by a name that found another object before", async () => {
    const listing = devices();
    expect(await listing.find("name taken")).toEqual({ id: "2", name: "taken" });
    listing.change("1", { name: "taken" }, ["name taken"]);
    expect(await listing.find("name taken")).toEqual({ id: "1", name: "taken" });
    listing.forget();
    expect(await listing.find("name taken")).toEqual({ id: "2", name: "taken" });
  });
});
