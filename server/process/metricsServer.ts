import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { fileFailureText } from "@gatehouse-access/sdk/errors";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { collectDefaultMetrics } from "prom-client";
import { openToOthers, strangersMayDoAnything } from "../files/dataFolder.ts";
import { HttpServers } from "../http/listener/HttpServers.ts";
import { schemaController } from "../http/listener/schemaController.ts";
import type { Metrics } from "../metrics.ts";
import { OperatorError } from "../OperatorError.ts";
import { isSameSecret } from "../secrets/digest.ts";

/** Minimum length of the metrics token, in characters. */
const TOKEN_LENGTH = 16;

/** Interval, in milliseconds, of the timer that measures how long the event loop is blocked. */
const LAG_INTERVAL = 10;

interface MetricsOptions {
  readonly logger: FastifyBaseLogger;
  /** The bearer token that a scraper must send. Undefined if no token is required. */
  readonly token: string | undefined;
}

/**
 * Serves `/metrics` for Prometheus on a separate listener, because only the operator may read metrics of all
 * namespaces. Also collects the metrics of the process and of Node.
 */
export function buildMetricsServer(metrics: Metrics, { logger, token }: MetricsOptions): FastifyInstance {
  collectDefaultMetrics({ register: metrics.registry, eventLoopMonitoringPrecision: LAG_INTERVAL });
  const servers = new HttpServers();
  const app: FastifyInstance = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    serverFactory: servers.make,
    schemaController,
  });
  servers.closeWith(app);
  app.get("/metrics", async (request, reply) => {
    if (token !== undefined && !isSameSecret(request.headers.authorization ?? "", `Bearer ${token}`)) {
      return reply
        .code(401)
        .header("WWW-Authenticate", "Bearer")
        .send({ message: "a bearer token is required" });
    }
    // Wait until the timer has recorded the last block of the event loop. Otherwise, a request that arrived during the
    // block would read and reset the maximum before the timer records the block.
    await wait(2 * LAG_INTERVAL);
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
  return app;
}

/**
 * Reads the token from a file, without surrounding whitespace.
 * @throws OperatorError the file cannot be read, is accessible to all users, or contains fewer than 16 characters
 */
export function readMetricsToken(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, "utf8").trim();
  } catch (error) {
    const what = `the metrics token ${file} (GATEHOUSE_METRICS_TOKEN_FILE)`;
    throw new OperatorError(fileFailureText("read", what, error), { cause: error });
  }
  if (openToOthers(file, strangersMayDoAnything)) {
    throw new OperatorError(`All users of this machine can read the token ${file}. Run \`chmod o= ${file}\``);
  }
  if (token.length < TOKEN_LENGTH) {
    throw new OperatorError(`The token in ${file} must have at least ${TOKEN_LENGTH} characters`);
  }
  return token;
}
