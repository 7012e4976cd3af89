import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyServerFactory } from "fastify";
import { HttpConnections } from "./HttpConnections.ts";

/**
 * Maximum total size of the request line and headers, in bytes. The longest filter fits even if it is percent-encoded.
 */
const HEADER_LIMIT = 64 * 1024;
/** Maximum number of headers. Node ignores further headers. */
const HEADER_COUNT = 200;
/** Maximum time, in milliseconds, for a request's headers to arrive, and for the whole request to arrive. */
const HEADERS_TIMEOUT = 15_000;
const REQUEST_TIMEOUT = 30_000;
/** Interval, in milliseconds, at which Node checks the timeouts for headers and requests. */
const CHECK_INTERVAL = 5_000;
/**
 * Maximum time, in milliseconds, that a connection may wait for its next request. This time is longer than a minute,
 * because proxies reuse connections for up to a minute.
 */
const KEEP_ALIVE_TIMEOUT = 72_000;
/**
 * Maximum time, in milliseconds, without data on a connection in use. After this time, the service disconnects a client
 * that does not read its response.
 */
const SILENCE_TIMEOUT = 120_000;

const bounds: http.ServerOptions = {
  maxHeaderSize: HEADER_LIMIT,
  headersTimeout: HEADERS_TIMEOUT,
  requestTimeout: REQUEST_TIMEOUT,
  connectionsCheckingInterval: CHECK_INTERVAL,
  keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
};

/** The certificate and private key of a server. */
export interface TlsIdentity {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly minVersion: "TLSv1.2";
}

/**
 * Creates the HTTP servers of an app. Fastify needs one server for each address to which the host name resolves. All
 * servers have the same limits and the same certificate.
 */
export class HttpServers {
  #tls: TlsIdentity | undefined;
  readonly #secure: https.Server[] = [];
  readonly #connections = new HttpConnections();

  /**
   * Creates a factory of servers.
   * @param tls certificate and key. If omitted, the servers use plain HTTP.
   */
  constructor(tls?: TlsIdentity) {
    this.#tls = tls;
  }

  /** Creates a server. Fastify's option `serverFactory` calls this function. */
  readonly make: FastifyServerFactory = (handler) => {
    const oneAtATime = this.#connections.oneAtATime(handler);
    const options = { ...bounds, IncomingMessage: this.#connections.Request };
    const server = this.#tls
      ? this.#makeSecure({ ...options, ...this.#tls }, oneAtATime)
      : http.createServer(options, oneAtATime);
    this.#connections.watch(server, this.secure);
    // Fastify creates one server for each address of the host, and the first server receives the upgrade requests of
    // the other servers. If the first server did not handle upgrades, such a request would hang. With this callback,
    // Node handles an upgrade request like any other request.
    Object.assign(server, { shouldUpgradeCallback: () => false });
    server.maxHeadersCount = HEADER_COUNT;
    return server.setTimeout(SILENCE_TIMEOUT);
  };

  #makeSecure(options: https.ServerOptions, handler: http.RequestListener): https.Server {
    const server = https.createServer(options, handler);
    this.#secure.push(server);
    return server;
  }

  /** Stops accepting connections and closes idle connections as soon as the app begins to close. */
  closeWith(app: FastifyInstance): void {
    app.addHook("preClose", () => this.#connections.close());
  }

  /** Ends each connection after its next response, see {@link HttpConnections.endAfterResponses}. */
  endAfterResponses(): void {
    this.#connections.endAfterResponses();
  }

  /** Releases a connection that continues with a different protocol, see {@link HttpConnections.release}. */
  release(socket: Socket): boolean {
    return this.#connections.release(socket);
  }

  /** True if the servers use TLS. */
  get secure(): boolean {
    return this.#tls !== undefined;
  }

  /** Replaces the certificate for new connections. Open connections keep the old certificate. */
  renewTls(tls: TlsIdentity): void {
    this.#tls = tls;
    for (const server of this.#secure) server.setSecureContext(tls);
  }
}
