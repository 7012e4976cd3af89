import { internal, tenantId } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";
import { ForbiddenError } from "../../errors.ts";
import { isSameSecret } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import { parse } from "../contract/validation.ts";
import { authenticate, readCredential } from "./authenticate.ts";

/**
 * Refuses requests without the internal token before any other check, unknown paths included. With 403, because 401
 * would tell the edge that the end user's own credential is wrong.
 */
export function requireInternalToken(app: FastifyInstance, token: string): void {
  app.addHook("onRequest", async (request) => {
    const sent = request.headers[internal.INTERNAL_TOKEN.toLowerCase()];
    if (typeof sent === "string" && isSameSecret(sent, token)) return;
    throw new ForbiddenError(`${internal.INTERNAL_TOKEN}: missing or wrong`);
  });
}

/** Authenticates the forwarded credential for the operations that are about one; others have no caller. */
export function authenticateForwarded(app: FastifyInstance, services: Services): void {
  app.decorateRequest("identity", null);
  app.addHook("onRequest", async (request) => {
    if (request.routeOptions.config.operation?.scope !== "forwarded") return;
    request.identity = await authenticate(services, await readCredential(services, request.headers));
  });
}

/** Reads the tenant of X-Tenant-ID for the operations about a namespace. */
export function readTenant(app: FastifyInstance): void {
  app.addHook("onRequest", async (request) => {
    if (request.routeOptions.config.operation?.scope !== "tenant") return;
    request.identity = { tenant: parse(tenantId, request.headers["x-tenant-id"], "X-Tenant-ID") };
  });
}
