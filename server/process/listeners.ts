import type { AddressInfo } from "node:net";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { collectDefaultMetrics } from "prom-client";
import { isLoopback } from "../addresses.ts";
import type { Gateway } from "../gateway/Gateway.ts";
import { readHostKey } from "../gateway/hostKey.ts";
import { OperatorError } from "../OperatorError.ts";
import type { Services } from "../services.ts";
import type { InternalConfig, ServiceSettings } from "../settings/readConfig.ts";
import { buildInternalApp } from "./internalApp.ts";
import { buildMetricsServer, readMetricsToken } from "./metricsServer.ts";
import { listeningAddress } from "./serviceAddress.ts";

interface HostAndPort {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** Serves metrics on a listener of their own. */
export async function serveMetrics(
  { metrics, settings }: Services,
  address: HostAndPort,
  logger: FastifyBaseLogger,
): Promise<FastifyInstance> {
  const token = settings.metricsTokenFile && readMetricsToken(settings.metricsTokenFile);
  collectDefaultMetrics({ register: metrics.registry });
  const server = buildMetricsServer(metrics, { logger, token });
  await listen(server, address, { what: "metrics", flags: "--metrics-address" });
  const listening = server.server.address() as AddressInfo;
  if (token === undefined && !isLoopback(listening.address)) {
    logger.warn("metrics are open to everybody who reaches their address: set GATEHOUSE_METRICS_TOKEN_FILE");
  }
  return server;
}

/**
 * Serves internal operations on a listener of their own.
 * @throws OperatorError the address cannot be listened on
 */
export async function serveInternal(
  gateway: Gateway,
  config: InternalConfig,
  log: FastifyBaseLogger,
): Promise<FastifyInstance> {
  const logger = log.child({ listener: "internal" });
  const app = await buildInternalApp(gateway.services, gateway, {
    loggerInstance: logger,
    token: config.token,
  });
  await listen(app, config, { what: "internal operations", flags: "--internal-host, --internal-port" });
  logger.info({ address: listeningAddress(app, { tls: undefined }) }, "listening for internal operations");
  const { address } = app.server.address() as AddressInfo;
  if (!isLoopback(address)) {
    logger.warn("internal operations are served without TLS: only trusted services may reach their network");
  }
  return app;
}

/**
 * Lets an app accept requests.
 * @param what what the app serves, for the log
 * @param flags flags that choose the address
 * @throws OperatorError the address cannot be listened on
 */
export async function listen(
  app: FastifyInstance,
  { host, port }: HostAndPort,
  { what, flags }: { readonly what: string; readonly flags: string },
): Promise<void> {
  try {
    await app.listen({ host, port, listenTextResolver: (address) => `${what} open at ${address}` });
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error)) throw error;
    throw new OperatorError(`Cannot listen on ${host} port ${port} (${flags}): ${error.message}`, {
      cause: error,
    });
  }
}

/**
 * Serves SSH to devices.
 * @throws OperatorError the address cannot be listened on, or the host key cannot be used
 */
export async function serveSsh(
  gateway: Gateway,
  { dataDir, sshHost: host, sshHostKeyFile }: ServiceSettings,
  sshPort: number,
): Promise<void> {
  const { pem, fingerprint } = readHostKey(dataDir, sshHostKeyFile);
  const port = await gateway.listen({ host, port: sshPort, hostKey: pem });
  gateway.log().info({ host, port, hostKey: fingerprint, gateway: gateway.process.pid }, "listening for SSH");
}
