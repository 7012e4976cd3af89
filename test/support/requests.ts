import { vi } from "vitest";
import type { TestService } from "./service.ts";

/** Returns the requests that the service receives while `work` runs, as `METHOD /path` without the query. */
export async function requestsDuring(service: TestService, work: () => Promise<unknown>): Promise<string[]> {
  const from = await mark(service);
  await work();
  const to = await mark(service);
  return requestsOf(service)
    .slice(from + 1, to)
    .map((line) => line.req as { method: string; url: string })
    .map(({ method, url }) => `${method} ${url.split("?")[0]}`);
}

const requestsOf = (service: TestService) => service.logs().filter((line) => line.msg === "request");

/**
 * Sends a request and returns its position in the service's log. Waits until the test has received the request's log
 * line. Log lines arrive in order, so the test then also has the lines of all requests that the service answered
 * earlier.
 */
async function mark(service: TestService): Promise<number> {
  const { headers } = await fetch(`${service.url}/healthcheck`);
  const id = headers.get("x-request-id");
  const place = () => requestsOf(service).findIndex((line) => line.reqId === id);
  await vi.waitUntil(() => place() >= 0, { timeout: 20_000, interval: 5 });
  return place();
}
