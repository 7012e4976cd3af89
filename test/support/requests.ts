import type { TestService } from "./service.ts";

/** The requests that the service saw while `work` ran, as `METHOD /path` without the query. */
export async function requestsDuring(service: TestService, work: () => Promise<unknown>): Promise<string[]> {
  const seen = () => service.logs().filter((line) => line.msg === "request");
  await settled();
  const before = seen().length;
  await work();
  await settled();
  return seen()
    .slice(before)
    .map((line) => line.req as { method: string; url: string })
    .map(({ method, url }) => `${method} ${url.split("?")[0]}`);
}

/** The log is read through a pipe: what was answered may still be on its way. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 150));
