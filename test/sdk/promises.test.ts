import { expect, it, vi } from "vitest";
import { PromiseCache, sharedWhilePending } from "../../sdk/promises.ts";

it("starts the work for each key once", async () => {
  const cache = new PromiseCache<string, number>();
  const start = vi.fn(async () => start.mock.calls.length);
  expect(await Promise.all(["a", "a", "b"].map((key) => cache.get(key, start)))).toEqual([1, 1, 2]);
  expect(await cache.get("a", start)).toBe(1);
  expect(await Promise.all(cache.values())).toEqual([1, 2]);
});

it("starts the work again after a failure", async () => {
  const cache = new PromiseCache<string, string>();
  await expect(cache.get("a", () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  expect(cache.has("a")).toBe(false);
  expect(await cache.get("a", async () => "second")).toBe("second");
  expect(cache.has("a")).toBe(true);
});

it("replaces the promise of a key", async () => {
  const cache = new PromiseCache<string, string>();
  cache.set("a", Promise.resolve("put"));
  expect(await cache.get("a", async () => "started")).toBe("put");
});

it("keeps the newer promise when an older one fails after clear", async () => {
  const cache = new PromiseCache<string, string>();
  const older = Promise.withResolvers<string>();
  const failed = cache.get("a", () => older.promise);
  cache.clear();
  const newer = cache.get("a", async () => "newer");
  older.reject(new Error("failed"));
  await expect(failed).rejects.toThrow("failed");
  expect(await cache.get("a", async () => "third")).toBe(await newer);
});

it("shares one call among concurrent calls, and starts the next call after it has ended", async () => {
  const results = [Promise.resolve(1), Promise.reject(new Error("failed")), Promise.resolve(3)];
  const start = vi.fn(async () => results[start.mock.calls.length - 1]);
  const shared = sharedWhilePending(start);
  expect(await Promise.all([shared(), shared()])).toEqual([1, 1]);
  await expect(Promise.all([shared(), shared()])).rejects.toThrow("failed");
  expect(await shared()).toBe(3);
  expect(start).toHaveBeenCalledTimes(3);
});
