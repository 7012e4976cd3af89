import { randomUUID } from "node:crypto";
import { operations as allOperations } from "@gatehouse-access/sdk/contract";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyServerOptions,
  LogController,
} from "fastify";
import { writeObject } from "./changes/writeObject.ts";
import { askBilling } from "./features/billing/ask.ts";
import { handlers } from "./features/handlers.ts";
import { objects } from "./features/objects.ts";
import { serveSaml } from "./features/saml/samlRoutes.ts";
import { authorizeRequests } from "./http/authorizeRequests.ts";
import { readBodies } from "./http/bodies.ts";
import { allowOrigins } from "./http/cors.ts";
import { requireDeclaredAccess } from "./http/declaredAccess.ts";
import { serveDocumentation } from "./http/documentation.ts";
import { answerErrors } from "./http/errorHandler.ts";
import { HttpServers } from "./http/HttpServers.ts";
import type { Behaviour } from "./http/handler.ts";
import { openApiDocument } from "./http/openapi.ts";
import { limitRequests } from "./http/rateLimits.ts";
import { gatherFacts, requireOneHost } from "./http/requestFacts.ts";
import { absentPaths, servedOperations, serveOperations } from "./http/routes.ts";
import { schemaController } from "./http/schemaController.ts";
import { securityHeaders, sendSecurityHeaders } from "./http/securityHeaders.ts";
import { answerUnservedPaths } from "./http/unservedPaths.ts";
import { servePages } from "./pages/servePages.ts";
import type { Services } from "./services.ts";

export interface AppOptions {
  /** Fastify's logger option; without it nothing is logged. */
  readonly logger?: FastifyServerOptions["logger"];
  /** A logger that is there already, instead of a new one. */
  readonly loggerInstance?: FastifyBaseLogger;
  /** Makes the servers below the app; left out: of plain HTTP. */
  readonly servers?: HttpServers;
}

/** What the operations do. */
export const behaviour: Behaviour = {
  handlers,
  admit: askBilling,
  write: (services, request) => writeObject(objects, services, request),
};

/** Largest request body of a route that is no operation, in bytes; the contract has those of operations. */
const BODY_LIMIT = 64 * 1024;
/** Longest path parameter that reaches validation, which then says what is allowed. */
const PARAMETER_LIMIT = 2048;

/**
 * What the listeners of the service have in common, without routes and without a check of who is calling. A route
 * that declares no access (`config.operation` or `config.publicBecause`) makes `register`, `route` or `ready` throw:
 * nothing is open by accident.
 * @param corsOrigins origins whose pages may read the answers
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
    // One line a request, written below, instead of Fastify's two.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    bodyLimit: BODY_LIMIT,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: PARAMETER_LIMIT },
    schemaController,
    // No hook runs for a URL that cannot be read, and the request has no facts.
    frameworkErrors: (_error, request, reply: FastifyReply) =>
      reply
        .code(400)
        .headers(securityHeaders(request.id, servers.secure))
        .send({ message: "URL: must be well-formed" }),
  });
  servers.closeWith(app);
  gatherFacts(app, services.settings);
  sendSecurityHeaders(app);
  requireOneHost(app);
  await allowOrigins(app, corsOrigins);
  requireDeclaredAccess(app);
  answerErrors(app);
  readBodies(app);
  // The line has these fields alone, none of them a secret; to look for some in it takes longer than to write it.
  const requestLog = app.log.child({}, { redact: [] });
  app.addHook("onResponse", async (request, reply) => {
    const { statusCode, elapsedTime } = reply;
    requestLog.info({ reqId: request.id, req: request, statusCode, ms: elapsedTime }, "request");
    const { config, url } = request.routeOptions;
    // The route's pattern, where it is no operation: a raw path would make a series for each one that is tried.
    const operation = config.operation?.id ?? url ?? "none";
    services.metrics.requests.inc({ operation, status: statusCode });
    services.metrics.duration.observe({ operation }, elapsedTime / 1000);
  });
  return app;
}

/** Builds the service's HTTP side; it never listens. */
export async function buildApp(services: Services, options: AppOptions = {}): Promise<FastifyInstance> {
  const { settings } = services;
  const app = await newApp(services, options, settings.corsOrigins);
  answerUnservedPaths(app, absentPaths(allOperations, settings.edition));
  limitRequests(app, services);
  authorizeRequests(app, services);

  const operations = servedOperations(allOperations, settings.edition);
  serveOperations(app, services, operations, behaviour);
  // Made when it is first asked for: few instances ever are, and it takes a tenth of the start.
  // One buffer for all answers: a text would be copied for each that its reader is slow to take.
  let document: Buffer | undefined;
  app.get(
    "/openapi.json",
    { config: { publicBecause: "describes the interface, holds no data" } },
    async (_request, reply) => {
      document ??= Buffer.from(JSON.stringify(openApiDocument(operations)));
      return reply.type("application/json; charset=utf-8").send(document);
    },
  );
  serveDocumentation(app);
  if (settings.pages) servePages(app, operations);
  if (settings.saml) await serveSaml(app, services, settings.saml);
  return app;
}
