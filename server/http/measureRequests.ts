import type { FastifyInstance } from "fastify";
import type { Metrics } from "../process/metrics.ts";
import "./declaredAccess.ts";

/** Counts and times every answer. */
export function measureRequests(app: FastifyInstance, { requests, duration }: Metrics): void {
  app.addHook("onResponse", async ({ routeOptions }, reply) => {
    // The route's pattern, where it is no operation: a raw path would make a series for each one that is tried.
    const operation = routeOptions.config.operation?.id ?? routeOptions.url ?? "none";
    requests.inc({ operation, status: reply.statusCode });
    duration.observe({ operation }, reply.elapsedTime / 1000);
  });
}
