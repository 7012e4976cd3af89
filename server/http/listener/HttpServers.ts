import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyServerFactory } from "fastify";
import { HttpConnections } from "./HttpConnections.ts";

/** Maximum size of the request line with headers, in bytes: room for the longest filter, percent-encoded. */
const HEADER_LIMIT = 64 * 1024;
/** Maximum number of headers; Node ignores those that follow. */
const HEADER_COUNT = 200;
/** How long a request's headers, and all of it, may take to arrive, in milliseconds. */
const HEADERS_TIMEOUT = 15_000;
const REQUEST_TIMEOUT = 30_000;
/** How often Node checks these two timeouts, in milliseconds. */
const CHECK_INTERVAL = 5_000;
/** How long a connection may wait for its next request, in milliseconds: longer than the minute that proxies wait. */
const KEEP_ALIVE_TIMEOUT = 72_000;
/** How long a connection in use may be silent, in milliseconds: a client that does not read its response is cut off. */
const SILENCE_TIMEOUT = 120_000;

const bounds: http.ServerOptions = {
  maxHeaderSize: HEADER_LIMIT,
  headersTimeout: HEADERS_TIMEOUT,
  requestTimeout: REQUEST_TIMEOUT,
  connectionsCheckingInterval: CHECK_INTERVAL,
  keepAliveTimeout: KEEP_ALIVE_TIMEOUT,
};

/** The certificate and key by which a server identifies itself. */
export interface TlsIdentity {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly minVersion: "TLSv1.2";
}

/**
 * Makes the HTTP servers of an app: Fastify wants one for each address of the host's name, and all of them have the
 * same limits and the same certificate.
 */
export class HttpServers {
  #tls: TlsIdentity | undefined;
  readonly #secure: https.Server[] = [];
  readonly #connections = new HttpConnections();

  /** @param tls by default none: plain HTTP */
  constructor(tls?: TlsIdentity) {
    this.#tls = tls;
  }

  /** Fastify's `serverFactory`. */
  readonly make: FastifyServerFactory = (handler) => {
    const oneAtATime = this.#connections.oneAtATime(handler);
    const options = { ...bounds, IncomingMessage: this.#connections.Request };
    const server = this.#tls
      ? this.#makeSecure({ ...options, ...this.#tls }, oneAtATime)
      : http.createServer(options, oneAtATime);
    this.#connections.watch(server, this.secure);
    // Otherwise an upgrade request would hang on the second of two addresses, where Fastify listens for it.
    Object.assign(server, { shouldUpgradeCallback: () => false });
    server.maxHeadersCount = HEADER_COUNT;
    return server.setTimeout(SILENCE_TIMEOUT);
  };

  #makeSecure(options: https.ServerOptions, handler: http.RequestListener): https.Server {
    const server = https.createServer(options, handler);
    this.#secure.push(server);
    return server;
  }

  /** Makes idle connections close as soon as the app is told to close. */
  closeWith(app: FastifyInstance): void {
    app.addHook("preClose", async () => this.#connections.close());
  }

  /** See {@link HttpConnections.release}. */
  release(socket: Socket): boolean {
    return this.#connections.release(socket);
  }

  /** True when the servers speak TLS. */
  get secure(): boolean {
    return this.#tls !== undefined;
  }

  /** New connections get the new certificate; open ones go on. */
  renewTls(tls: TlsIdentity): void {
    this.#tls = tls;
    for (const server of this.#secure) server.setSecureContext(tls);
  }
}
