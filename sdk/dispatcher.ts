import { X509Certificate } from "node:crypto";
import { getCACertificates } from "node:tls";
import { Agent, buildConnector, type Dispatcher, Pool, ProxyAgent } from "undici";
import { ConfigurationError } from "./errors.ts";
import type { HttpProxy } from "./proxies.ts";
import { ProxyError } from "./proxyError.ts";

/** Settings of the connections of a dispatcher. */
export interface DispatcherOptions {
  /** The proxy for all requests; undefined to connect directly. */
  readonly proxy?: HttpProxy | undefined;
  /** Maximum time to connect, including the TLS handshake, in milliseconds. */
  readonly connectTimeout: number;
  /** Certificates (PEM) of authorities to trust in addition to those that Node trusts. */
  readonly ca?: string | undefined;
  /** Maximum number of simultaneous connections. @default no limit */
  readonly connections?: number;
  /** Maximum size of a response in bytes. @default no limit */
  readonly maxResponseSize?: number;
}

/**
 * Returns the certificates that TLS connections trust: the certificates that this process trusts (including
 * NODE_EXTRA_CA_CERTS and `--use-system-ca`), and `ca` (PEM).
 * @throws ConfigurationError when `ca` does not contain a certificate
 */
export function trusted(ca: string): string[] {
  try {
    new X509Certificate(ca);
  } catch (cause) {
    throw new ConfigurationError(
      "the CA certificates (ca, GATEHOUSE_CA_FILE) are not in PEM format. Use a file that contains -----BEGIN CERTIFICATE-----",
      { cause },
    );
  }
  return [...getCACertificates("default"), ca];
}

/**
 * Returns true if the proxy forwards the requests for a URL, because neither the URL nor the proxy uses TLS. Other
 * requests go through a tunnel from the proxy to the target.
 */
export const isForwarded = ({ protocol }: URL, proxy: HttpProxy): boolean =>
  protocol === "http:" && proxy.address.startsWith("http:");

/**
 * Creates the dispatcher for requests to one address. With a proxy, TLS remains end to end: the proxy cannot read the
 * requests, and the client verifies the certificate of the target.
 * @returns a dispatcher whose requests fail with a {@link ProxyError} if the proxy does not open a connection
 * @throws ConfigurationError when `ca` does not contain a certificate
 */
export function createDispatcher(
  target: URL,
  { proxy, connectTimeout: timeout, ca, ...limits }: DispatcherOptions,
): Dispatcher {
  const tls = ca === undefined ? {} : { ca: trusted(ca) };
  if (!proxy) return new Agent({ ...limits, connect: { timeout, ...tls } });
  if (isForwarded(target, proxy)) return forwarder(proxy, target, timeout, limits);
  return new ProxyAgent({
    ...limits,
    uri: proxy.address,
    headers: proxy.headers,
    connectTimeout: timeout,
    requestTls: tls,
    proxyTls: tls,
    proxyTunnel: true,
    clientFactory: (address, options) => tunnelPool(proxy, target, timeout, new Pool(address, options)),
  });
}

/** Creates the connections to a proxy. Each connection becomes a tunnel to the target. */
function tunnelPool(proxy: HttpProxy, { href }: URL, timeout: number, pool: Pool): Dispatcher {
  const open = pool.connect.bind(pool) as (
    options: Dispatcher.ConnectOptions,
  ) => Promise<Dispatcher.ConnectData>;
  const connect = async (options: Dispatcher.ConnectOptions) => {
    const response = await open({ ...options, signal: AbortSignal.timeout(timeout) }).catch(
      (error: Error) => {
        throw new ProxyError(proxy, href, error);
      },
    );
    if (response.statusCode === 200) return response;
    response.socket.on("error", () => {}).destroy();
    throw new ProxyError(proxy, href, response.statusCode);
  };
  return Object.assign(pool, { connect: connect as Pool["connect"] });
}

/** Creates connections to a proxy that forwards requests without TLS (RFC 9112, section 3.2.2). */
function forwarder(proxy: HttpProxy, { href }: URL, timeout: number, limits: object): Dispatcher {
  const connect = buildConnector({ timeout });
  const agent = new Agent({
    ...limits,
    connect: (options, callback) =>
      connect(options, (...[error, socket]) =>
        error ? callback(new ProxyError(proxy, href, error), null) : callback(null, socket as never),
      ),
  });
  return agent.compose((dispatch) => ({ origin = "", path, headers, ...options }, handler) => {
    const { host } = new URL(origin);
    return dispatch(
      {
        ...options,
        origin: proxy.address,
        path: `${origin}${path}`,
        headers: { ...(headers as Record<string, string>), host, ...proxy.headers },
      },
      handler,
    );
  });
}
