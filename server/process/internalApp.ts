import {
  type InternalOperations,
  internal,
  internalOperations,
  tenantId,
} from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";
import { type AppOptions, behaviorOf, newApp, requireSchema } from "../app.ts";
import { ForbiddenError } from "../errors.ts";
import { internalHandlers } from "../features/internalHandlers.ts";
import type { Gateway } from "../gateway/Gateway.ts";
import { peerHandlers } from "../gateway/handlers.ts";
import { authenticate, readCredential } from "../http/access/authenticate.ts";
import { parse } from "../http/contract/validation.ts";
import { HttpServers } from "../http/listener/HttpServers.ts";
import { answerUnservedPaths } from "../http/listener/unservedPaths.ts";
import { acceptWebSockets, type WebSocketLimits } from "../http/listener/webSockets.ts";
import { absentPaths, servedOperations, serveOperations } from "../http/routes.ts";
import { isSameSecret } from "../secrets/digest.ts";
import type { Services } from "../services.ts";

interface InternalAppOptions extends AppOptions {
  /** The token that every request must carry in `X-Internal-Token`. */
  readonly token: string;
  /** Overrides of default limits, for tests. */
  readonly webSockets?: Partial<WebSocketLimits>;
}

/**
 * Builds the app for trusted services on the private network (clients section 7). The app serves only the internal
 * operations, and no public operations. This function does not start a listener.
 */
export async function buildInternalApp(
  services: Services,
  gateway: Gateway,
  { token, webSockets, ...options }: InternalAppOptions,
): Promise<FastifyInstance> {
  const servers = options.servers ?? new HttpServers();
  const app = await newApp(services, { ...options, servers }, []);
  requireInternalToken(app, token);
  requireSchema(app, gateway);
  const { edition } = services.settings;
  answerUnservedPaths(app, absentPaths(internalOperations, edition));
  authenticateForwarded(app, services);
  readTenant(app);
  acceptWebSockets(app, servers, webSockets);
  const operations = servedOperations(internalOperations, edition);
  const behavior = behaviorOf<InternalOperations>({ ...internalHandlers, ...peerHandlers(gateway) });
  serveOperations(app, services, operations, behavior);
  return app;
}

/**
 * Rejects requests without the internal token, also requests to unknown paths, before any other check. The status is
 * 403, because a reverse proxy would interpret 401 as a wrong user credential.
 */
function requireInternalToken(app: FastifyInstance, token: string): void {
  app.addHook("onRequest", async (request) => {
    const sent = request.headers[internal.INTERNAL_TOKEN.toLowerCase()];
    if (typeof sent === "string" && isSameSecret(sent, token)) return;
    throw new ForbiddenError(`${internal.INTERNAL_TOKEN} is missing or wrong`);
  });
}

/**
 * Authenticates the forwarded credential if the operation needs one. An operation that needs no credential has no
 * caller.
 */
function authenticateForwarded(app: FastifyInstance, services: Services): void {
  app.decorateRequest("identity", null);
  app.addHook("onRequest", async (request) => {
    if (request.routeOptions.config.operation?.scope !== "forwarded") return;
    request.identity = await authenticate(services, await readCredential(services, request.headers));
  });
}

/** Reads the tenant id from the header `X-Tenant-ID`. Does so only for operations on a namespace. */
function readTenant(app: FastifyInstance): void {
  app.addHook("onRequest", async (request) => {
    if (request.routeOptions.config.operation?.scope !== "tenant") return;
    request.identity = { tenant: parse(tenantId, request.headers["x-tenant-id"], "X-Tenant-ID") };
  });
}
