import type { Operation, RequestLimit } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The contract's operation that the route serves; it declares who may call it. */
    operation?: Operation;
    /** Declares a route that is not an operation as open to everybody, with the reason. */
    publicBecause?: string;
    /** Rate limit of a route that is not an operation. */
    limit?: Pick<RequestLimit, "kind">;
  }
}

/**
 * Deny by default: from now on a new route without declared access throws, so that a forgotten check keeps the server
 * from starting instead of leaving the route open.
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
