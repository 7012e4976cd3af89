import type { AddressInfo } from "node:net";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { isLoopback } from "../addresses.ts";
import type { Gateway } from "../gateway/Gateway.ts";
import { OperatorError, reasonOf } from "../OperatorError.ts";
import { type HostKey, readHostKey } from "../secrets/hostKey.ts";
import type { Services } from "../services.ts";
import type { InternalConfig, ServiceSettings } from "../settings/readConfig.ts";
import { buildInternalApp } from "./internalApp.ts";
import { buildMetricsServer, readMetricsToken } from "./metricsServer.ts";
import { listeningAddress } from "./serviceAddress.ts";

interface HostAndPort {
  readonly host: string;
  /** Port of the listener. 0 selects any free port. */
  readonly port: number;
}

/** Serves metrics on a separate listener. */
export async function serveMetrics(
  { metrics, settings }: Services,
  address: HostAndPort,
  logger: FastifyBaseLogger,
): Promise<FastifyInstance> {
  const token = settings.metricsTokenFile && readMetricsToken(settings.metricsTokenFile);
  const server = buildMetricsServer(metrics, { logger, token });
  await listen(server, address, { what: "metrics", flags: "--metrics-address" });
  const listening = server.server.address() as AddressInfo;
  if (token === undefined && !isLoopback(listening.address)) {
    logger.warn(
      "every client that can connect to the metrics address can read the metrics. Set GATEHOUSE_METRICS_TOKEN_FILE",
    );
  }
  return server;
}

/**
 * Serves internal operations on a separate listener.
 * @throws OperatorError the process cannot listen on the address
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
    logger.warn("internal operations are served without TLS. Allow only trusted services on their network");
  }
  return app;
}

/**
 * Starts accepting requests.
 * @param what name of the listener in messages
 * @param flags names of the flags that set the address, for the error message
 * @throws OperatorError the process cannot listen on the address
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
    throw new OperatorError(`Cannot listen on ${host} port ${port} (${flags}): ${reasonOf(error)}`, {
      cause: error,
    });
  }
}

/**
 * Serves SSH to devices.
 * @returns the host key that clients see
 * @throws OperatorError the process cannot listen on the address, or the host key cannot be used
 */
export async function serveSsh(
  gateway: Gateway,
  { dataDir, sshHost: host, sshHostKeyFile }: ServiceSettings,
  sshPort: number,
): Promise<HostKey> {
  const key = readHostKey(dataDir, sshHostKeyFile);
  const port = await gateway.listen({ host, port: sshPort, hostKey: key.pem });
  gateway
    .log()
    .info({ host, port, hostKey: key.fingerprint, gateway: gateway.process.pid }, "listening for SSH");
  return key;
}
