import type { Operation, RequestLimit } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The contract's operation that the route serves; it says who may call it. */
    operation?: Operation;
    /** Marks a route that is no operation as open to everybody, and says why it may be. */
    publicBecause?: string;
    /** How often a route that is no operation may be called. */
    limit?: Pick<RequestLimit, "kind">;
  }
}

/**
 * Deny by default: from here on, adding a route that does not declare who may call it throws, so that a
 * forgotten check keeps the server from starting instead of leaving a door open.
 */
export function requireDeclaredAccess(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    const { operation, publicBecause } = route.config ?? {};
    if (operation === undefined && !publicBecause) {
      throw new Error(
        `Route ${route.method} ${route.url} does not declare who may call it: give it config.operation, ` +
          "or config.publicBecause with the reason why it is open to everybody",
      );
    }
  });
}
