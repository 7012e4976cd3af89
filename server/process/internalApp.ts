import { type InternalOperations, internalOperations } from "@gatehouse-access/sdk/contract";
import type { FastifyInstance } from "fastify";
import { type AppOptions, behaviourOf, newApp } from "../app.ts";
import { internalHandlers } from "../features/internalHandlers.ts";
import type { Gateway } from "../gateway/Gateway.ts";
import { peerHandlers } from "../gateway/handlers.ts";
import { authenticateForwarded, readTenant, requireInternalToken } from "../http/access/internalAccess.ts";
import { HttpServers } from "../http/listener/HttpServers.ts";
import { answerUnservedPaths } from "../http/listener/unservedPaths.ts";
import { acceptWebSockets, type WebSocketLimits } from "../http/listener/webSockets.ts";
import { absentPaths, servedOperations, serveOperations } from "../http/routes.ts";
import type { Services } from "../services.ts";

interface InternalAppOptions extends AppOptions {
  /** The token that every request must carry in `X-Internal-Token`. */
  readonly token: string;
  /** Replaces some default limits, for tests. */
  readonly webSockets?: Partial<WebSocketLimits>;
}

/**
 * Builds the app for trusted services on the private network (clients section 7), with the internal operations and no
 * public ones. It never listens.
 */
export async function buildInternalApp(
  services: Services,
  gateway: Gateway,
  { token, webSockets, ...options }: InternalAppOptions,
): Promise<FastifyInstance> {
  const servers = options.servers ?? new HttpServers();
  const app = await newApp(services, { ...options, servers }, []);
  requireInternalToken(app, token);
  const { edition } = services.settings;
  answerUnservedPaths(app, absentPaths(internalOperations, edition));
  authenticateForwarded(app, services);
  readTenant(app);
  acceptWebSockets(app, servers, webSockets);
  const operations = servedOperations(internalOperations, edition);
  const behaviour = behaviourOf<InternalOperations>({ ...internalHandlers, ...peerHandlers(gateway) });
  serveOperations(app, services, operations, behaviour);
  return app;
}
