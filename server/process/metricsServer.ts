import { readFileSync } from "node:fs";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { openToOthers, strangersMayDoAnything } from "../files/dataFolder.ts";
import { HttpServers } from "../http/listener/HttpServers.ts";
import { schemaController } from "../http/listener/schemaController.ts";
import type { Metrics } from "../metrics.ts";
import { OperatorError, reasonOf } from "../OperatorError.ts";
import { isSameSecret } from "../secrets/digest.ts";

/** Minimum length of the token that guards the metrics, in characters. */
const TOKEN_LENGTH = 16;

interface MetricsOptions {
  readonly logger: FastifyBaseLogger;
  /** The bearer token that a scraper must send; undefined: none is needed. */
  readonly token: string | undefined;
}

/** Serves `/metrics` for Prometheus on a listener of its own, since figures of all namespaces are for the operator. */
export function buildMetricsServer(metrics: Metrics, { logger, token }: MetricsOptions): FastifyInstance {
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
        .send({ message: "a bearer token is needed" });
    }
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
  return app;
}

/**
 * The token in a file, without surrounding whitespace.
 * @throws OperatorError the file cannot be read, is open to everybody, or holds fewer than 16 characters
 */
export function readMetricsToken(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, "utf8").trim();
  } catch (error) {
    const reason = reasonOf(error);
    throw new OperatorError(
      `Cannot read the token of the metrics ${file} (GATEHOUSE_METRICS_TOKEN_FILE): ${reason}`,
      { cause: error },
    );
  }
  if (openToOthers(file, strangersMayDoAnything)) {
    throw new OperatorError(`Everybody on this machine may read the token ${file}: run \`chmod o= ${file}\``);
  }
  if (token.length < TOKEN_LENGTH) {
    throw new OperatorError(`The token in ${file} must have at least ${TOKEN_LENGTH} characters`);
  }
  return token;
}
