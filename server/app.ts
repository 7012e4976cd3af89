import { randomUUID } from "node:crypto";
import { operations as allOperations } from "@gatehouse-access/sdk/contract";
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from "fastify";
import { handlers } from "./features/handlers.ts";
import { authorizeRequests } from "./http/authorizeRequests.ts";
import { readBodies } from "./http/bodies.ts";
import { requireDeclaredAccess } from "./http/declaredAccess.ts";
import { serveDocumentation } from "./http/documentation.ts";
import { answerErrors } from "./http/errorHandler.ts";
import { openApiDocument } from "./http/openapi.ts";
import { servedOperations, serveOperations } from "./http/routes.ts";
import { answerUnservedPaths } from "./http/unservedPaths.ts";
import type { Services } from "./services.ts";

export interface AppOptions {
  /** Fastify's logger option; without it nothing is logged. */
  readonly logger?: FastifyServerOptions["logger"];
  /** A logger that is there already, instead of a new one. */
  readonly loggerInstance?: FastifyBaseLogger;
}

/** Largest request body, in bytes. */
const BODY_LIMIT = 1024 * 1024;
/** Largest request line with headers, in bytes: room for the longest filter, percent-encoded. */
const HEADER_LIMIT = 64 * 1024;
/** Longest path parameter that reaches validation, which then says what is allowed. */
const PARAMETER_LIMIT = 2048;

const commonHeaders = ({ id }: FastifyRequest) => ({
  "X-Request-ID": id,
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
});

/**
 * What every listener of the service has in common, without routes and without a check of who is calling. A route
 * that declares no access (`config.operation` or `config.publicBecause`) makes `register`, `route` or `ready` throw:
 * nothing is open by accident.
 */
export function newApp(options: AppOptions): FastifyInstance {
  const app: FastifyInstance = Fastify({
    ...(options.loggerInstance
      ? { loggerInstance: options.loggerInstance }
      : { logger: options.logger ?? false }),
    // One line a request, written below, instead of Fastify's two.
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    bodyLimit: BODY_LIMIT,
    requestTimeout: 30_000,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: PARAMETER_LIMIT },
    http: { maxHeaderSize: HEADER_LIMIT },
    // No hook runs for a URL that cannot be read.
    frameworkErrors: (_error, request, reply: FastifyReply) =>
      reply.code(400).headers(commonHeaders(request)).send({ message: "URL: must be well-formed" }),
  });
  requireDeclaredAccess(app);
  answerErrors(app);
  readBodies(app);
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(commonHeaders(request));
  });
  app.addHook("onResponse", async (request, reply) => {
    request.log.info({ req: request, statusCode: reply.statusCode, ms: reply.elapsedTime }, "request");
  });
  return app;
}

/** Builds the service's HTTP side; it never listens. */
export async function buildApp(services: Services, options: AppOptions = {}): Promise<FastifyInstance> {
  const app = newApp(options);
  answerUnservedPaths(app);
  authorizeRequests(app, services);
  const operations = servedOperations(allOperations, services.settings.edition);
  serveOperations(app, services, operations, handlers);
  const document = JSON.stringify(openApiDocument(operations));
  app.get(
    "/openapi.json",
    { config: { publicBecause: "describes the interface, holds no data" } },
    async (_request, reply) => reply.type("application/json; charset=utf-8").send(document),
  );
  serveDocumentation(app);
  return app;
}
