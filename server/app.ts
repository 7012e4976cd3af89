import { randomUUID } from "node:crypto";
import {
  operations as allOperations,
  type Operations as PublicOperations,
} from "@gatehouse-access/sdk/contract";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyServerOptions,
  LogController,
} from "fastify";
import { writeObject } from "./changes/writeObject.ts";
import { checkBilling } from "./features/billing/checkBilling.ts";
import { handlers } from "./features/handlers.ts";
import { type ObjectRows, objects } from "./features/objects.ts";
import { serveSaml } from "./features/saml/samlRoutes.ts";
import type { Gateway } from "./gateway/Gateway.ts";
import { liveConnectionHandlers } from "./gateway/handlers.ts";
import { authorizeRequests } from "./http/access/authorize.ts";
import { allowOrigins } from "./http/access/cors.ts";
import { requireDeclaredAccess } from "./http/access/declaredAccess.ts";
import { serveDocumentation } from "./http/contract/documentation.ts";
import { openApiDocument } from "./http/contract/openapi.ts";
import type { Behavior, Handlers, Operations } from "./http/handler.ts";
import { limitLists } from "./http/limits/limitLists.ts";
import { limitRequests } from "./http/limits/rateLimits.ts";
import { answerErrors } from "./http/listener/errorHandler.ts";
import { HttpServers } from "./http/listener/HttpServers.ts";
import { readBodies } from "./http/listener/requestBodies.ts";
import { gatherFacts, requireOneHost } from "./http/listener/requestFacts.ts";
import { schemaController } from "./http/listener/schemaController.ts";
import { securityHeaders, sendSecurityHeaders } from "./http/listener/securityHeaders.ts";
import { answerUnservedPaths } from "./http/listener/unservedPaths.ts";
import { acceptWebSockets } from "./http/listener/webSockets.ts";
import { absentPaths, servedOperations, serveOperations } from "./http/routes.ts";
import { sendNotFound, servePages } from "./pages/servePages.ts";
import type { Services } from "./services.ts";

export interface AppOptions {
  /** Value of Fastify's option `logger`. @default no log */
  readonly logger?: FastifyServerOptions["logger"];
  /** An existing logger, used instead of a new one. */
  readonly loggerInstance?: FastifyBaseLogger;
  /** Creates the HTTP servers of the app. @default servers of plain HTTP */
  readonly servers?: HttpServers;
}

/**
 * Returns the functions that a listener's routes call: the handlers of the operations, the billing check and the
 * transactional write.
 * @param handlers handlers of the listener's operations
 */
export const behaviorOf = <T extends Operations>(handlers: Handlers<T, ObjectRows>): Behavior => ({
  handlers,
  checkBilling,
  write: (services, request) => writeObject(objects, services, request),
});

/**
 * Maximum size of the request body for a route that is not an operation, in bytes. The contract limits the bodies of
 * operations.
 */
const BODY_LIMIT = 64 * 1024;
/**
 * Maximum length of a path parameter before validation. Validation then applies and reports the limit of each
 * parameter.
 */
const PARAMETER_LIMIT = 2048;

/**
 * Builds the base app of every listener, without routes and authentication. If a route has no declared access
 * (`config.operation` or `config.publicBecause`), then `register`, `route` or `ready` throws, so that no route is
 * public by accident.
 * @param corsOrigins origins whose pages may read the responses
 */
export async function newApp(
  services: Services,
  options: AppOptions,
  corsOrigins: readonly string[],
): Promise<FastifyInstance> {
  const servers = options.servers ?? new HttpServers();
  const { logger = false, loggerInstance } = options;
  const app: FastifyInstance = Fastify({
    serverFactory: servers.make,
    ...(loggerInstance ? { loggerInstance } : { logger }),
    // The `onResponse` hook below writes one log line per request. Fastify itself would write two lines.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    bodyLimit: BODY_LIMIT,
    exposeHeadRoutes: false,
    // Answer requests that arrive while the service closes its connections.
    return503OnClosing: false,
    routerOptions: { maxParamLength: PARAMETER_LIMIT },
    schemaController,
    // Fastify runs no hooks for a malformed URL, so this handler sets the security headers itself.
    frameworkErrors: (_error, request, reply: FastifyReply) =>
      reply
        .code(400)
        .headers(securityHeaders(request.id, servers.secure))
        .send({ message: "URL must be well-formed" }),
  });
  servers.closeWith(app);
  gatherFacts(app, services.settings);
  sendSecurityHeaders(app);
  requireOneHost(app);
  await allowOrigins(app, corsOrigins);
  requireDeclaredAccess(app);
  answerErrors(app);
  readBodies(app);
  // Redaction is off: it would take longer than writing the line, and none of the fields below is a secret.
  const requestLog = app.log.child({}, { redact: [] });
  app.addHook("onResponse", async (request, reply) => {
    const { statusCode, elapsedTime } = reply;
    requestLog.info({ reqId: request.id, req: request, statusCode, ms: elapsedTime }, "request");
    const { config, url } = request.routeOptions;
    // For a route that is not an operation, the metric uses the route's pattern. With raw paths, each requested path
    // would create a time series.
    const operation = config.operation?.id ?? url ?? "none";
    services.metrics.requests.inc({ operation, status: statusCode });
    services.metrics.duration.observe({ operation }, elapsedTime / 1000);
  });
  return app;
}

/**
 * Rejects requests with 503 if this instance is not compatible with the schema of the database. The liveness probe
 * `/healthz` always responds, because it only reports that the process runs.
 */
export function requireSchema(app: FastifyInstance, { instances }: Pick<Gateway, "instances">): void {
  app.addHook("onRequest", async (request) => {
    if (request.routeOptions.url !== "/healthz") await instances.requireSchema();
  });
}

/** Builds the service's HTTP app. The app does not listen on an address. */
export async function buildApp(
  services: Services,
  gateway: Gateway,
  options: AppOptions = {},
): Promise<FastifyInstance> {
  const { settings } = services;
  const servers = options.servers ?? new HttpServers();
  const app = await newApp(services, { ...options, servers }, settings.corsOrigins);
  requireSchema(app, gateway);
  acceptWebSockets(app, servers);
  gateway.agentTunnels.problems.watch(app);
  answerUnservedPaths(
    app,
    absentPaths(allOperations, settings.edition),
    settings.pages ? sendNotFound : undefined,
  );
  limitRequests(app, services);
  authorizeRequests(app, services);
  limitLists(app, services);

  const operations = servedOperations(allOperations, settings.edition);
  const behavior = behaviorOf<PublicOperations>({ ...handlers, ...liveConnectionHandlers(gateway) });
  serveOperations(app, services, operations, behavior);
  // The service creates the document on the first request for it. Few instances receive such a request, and creating
  // the document at the start would make the start 10% slower. The document is a buffer, because Node would copy a
  // string for each slow client.
  let document: Buffer | undefined;
  app.get(
    "/openapi.json",
    { config: { publicBecause: "describes the API and contains no data" } },
    async (_request, reply) => {
      document ??= Buffer.from(JSON.stringify(openApiDocument(operations)));
      return reply.type("application/json; charset=utf-8").send(document);
    },
  );
  serveDocumentation(app);
  if (settings.pages) servePages(app, operations, settings.consoleUrl);
  if (settings.saml) await serveSaml(app, services, settings.saml);
  return app;
}
