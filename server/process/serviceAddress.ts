import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { isLoopback } from "../addresses.ts";
import type { Config } from "../settings/readConfig.ts";

/** The address on which an app listens, as a URL without a final slash. */
export function listeningAddress(app: FastifyInstance, { tls }: Pick<Config, "tls">): string {
  const { address, family, port } = app.server.address() as AddressInfo;
  return `${tls ? "https" : "http"}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/**
 * Returns the public URL. If no public URL is configured, returns a URL for a browser on this machine. A browser cannot
 * open `0.0.0.0` or `[::]`.
 */
export function browserAddress(app: FastifyInstance, config: Config): string {
  const local = listeningAddress(app, config)
    .replace("://0.0.0.0:", "://localhost:")
    .replace("://[::]:", "://localhost:");
  return config.settings.publicUrl ?? local;
}

/** Logs a warning if passwords and tokens cross the network without TLS. */
export function warnOfPlainHttp(app: FastifyInstance, { tls, settings }: Config): void {
  const { address } = app.server.address() as AddressInfo;
  if (tls || settings.trustedProxies.length > 0 || isLoopback(address)) return;
  app.log.warn(
    { address },
    "plain HTTP on the network: an attacker on the path can read passwords, tokens and keys. Set " +
      "GATEHOUSE_TLS_CERT_FILE and GATEHOUSE_TLS_KEY_FILE, or GATEHOUSE_TRUSTED_PROXIES if a proxy terminates TLS",
  );
}
