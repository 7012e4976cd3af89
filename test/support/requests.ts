import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { TestService } from "./service.ts";

/** The requests that the service saw while `work` ran, as `METHOD /path` without the query. */
export async function requestsDuring(service: TestService, work: () => Promise<unknown>): Promise<string[]> {
  const before = await settled(service);
  await work();
  const after = await settled(service);
  return requestsOf(service).slice(before + 1, after);
}

const requestsOf = (service: TestService): string[] =>
  service
    .logs()
    .filter((line) => line.msg === "request")
    .map((line) => line.req as { method: string; url: string })
    .map(({ method, url }) => `${method} ${url.split("?")[0]}`);

/**
 * The place in the log of a request that is sent for it alone. The log is read through a pipe, and what was answered may
 * still be on its way: all of that stands before this one.
 */
async function settled(service: TestService): Promise<number> {
  const path = `/settled-${randomUUID()}`;
  await (await fetch(`${service.url}${path}`)).arrayBuffer();
  const placeOf = () => requestsOf(service).indexOf(`GET ${path}`);
  await expect.poll(placeOf, { timeout: 30_000 }).toBeGreaterThanOrEqual(0);
  return placeOf();
}
