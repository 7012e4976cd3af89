import type { Operation, RequestLimit } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyContextConfig {
    /**
     * The contract's operation that the route serves. The operation declares the credentials and roles that may call
     * it.
     */
    operation?: Operation;
    /** The reason why a route that is not an operation is open to every client. */
    publicBecause?: string;
    /** Rate limit of a route that is not an operation. */
    limit?: Pick<RequestLimit, "kind">;
  }
}

/**
 * Makes the app throw when a route without declared access is added. A forgotten declaration then prevents the service
 * from starting, instead of leaving the route open.
 */
export function requireDeclaredAccess(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    const { operation, publicBecause } = route.config ?? {};
    if (operation === undefined && !publicBecause) {
      throw new Error(
        `Route ${route.method} ${route.url} has no declared access. Set config.operation, ` +
          "or set config.publicBecause to the reason why the route is public",
      );
    }
  });
}
