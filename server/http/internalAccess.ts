import { createHash, timingSafeEqual } from "node:crypto";
import { internal, tenantId } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";
import { ForbiddenError } from "../errors.ts";
import type { Services } from "../services.ts";
import { authenticate } from "./authenticate.ts";
import { parse } from "./validation.ts";

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * Lets only requests with the internal token through, before anything else is looked at, unknown paths included.
 * Refused with 403, not 401: that one tells the edge that the end user's own credential is no good.
 */
export function requireInternalToken(app: FastifyInstance, token: string): void {
  const expected = sha256(token);
  app.addHook("onRequest", async (request) => {
    const sent = request.headers[internal.INTERNAL_TOKEN.toLowerCase()];
    // Digests have one length, and comparing them takes the same time wherever they differ.
    if (typeof sent === "string" && timingSafeEqual(sha256(sent), expected)) return;
    throw new ForbiddenError(`${internal.INTERNAL_TOKEN}: missing or wrong`);
  });
}

/** Tells operations about a forwarded credential whose it is; others are about no caller. */
export function authenticateForwarded(app: FastifyInstance, services: Services): void {
  app.decorateRequest("identity", null);
  app.addHook("onRequest", async (request) => {
    if (request.routeOptions.config.operation?.scope !== "forwarded") return;
    request.identity = await authenticate(services, request.headers);
  });
}

/** Tells operations about a namespace which one the request's X-Tenant-ID names. */
export function readTenant(app: FastifyInstance): void {
  app.addHook("onRequest", async (request) => {
    if (request.routeOptions.config.operation?.scope !== "tenant") return;
    request.identity = { tenant: parse(tenantId, request.headers["x-tenant-id"], "X-Tenant-ID") };
  });
}
