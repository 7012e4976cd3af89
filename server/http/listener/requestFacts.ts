import type { IncomingHttpHeaders } from "node:http";
import { TLSSocket } from "node:tls";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { addressMatcher, networkOf, normalAddress } from "../../addresses.ts";
import { InvalidError } from "../../errors.ts";
import type { ServiceSettings } from "../../settings/readConfig.ts";

/**
 * The origin and the target of a request. Only this module reads headers that proxies set. It ignores these headers
 * unless a trusted proxy sent the request, because any client can send them (rules section 3).
 */
export interface RequestFacts {
  /** The request's id. The X-Request-ID header of the response and the log contain this id. */
  readonly id: string;
  /** IP address of the client, with IPv4 in dotted form. Empty if the connection is already closed. */
  readonly address: string;
  /** The network to which lockouts and rate limits apply: an IPv4 address, or the /64 of an IPv6 address. */
  readonly network: string;
  /**
   * Scheme, host and port at which clients reach the service. If no public address is configured, the values come from
   * the request.
   */
  readonly origin: URL;
  /** Media types of `Accept`, in lower case and without parameters, with their weights (0 to 1). */
  readonly accept: ReadonlyMap<string, number>;
  /** The header `Authorization`, for operations with an optional credential. Undefined if the header is absent. */
  readonly authorization: string | undefined;
  /** True if clients reach the service by TLS, directly or through a proxy. */
  readonly secure: boolean;
}

declare module "fastify" {
  interface FastifyRequest {
    readonly facts: RequestFacts;
  }
}

/**
 * Rejects a request with more than one `Host` (RFC 9112, section 3.2), because a proxy and the service may use
 * different ones. Node itself rejects HTTP/1.1 requests without `Host`.
 */
export function requireOneHost(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    done(hostsOf(request.raw.rawHeaders) > 1 ? new InvalidError("Host must occur once") : undefined);
  });
}

/**
 * Returns the number of `Host` headers.
 * @param headers alternating names and values, as received. Node's headers object cannot be used, because it keeps only
 *   the first `Host`.
 */
function hostsOf(headers: readonly string[]): number {
  let hosts = 0;
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts;
}

/** Adds the property `facts` to every request. */
export function gatherFacts(app: FastifyInstance, settings: ServiceSettings): void {
  const { publicUrl } = settings;
  const isTrusted = addressMatcher(settings.trustedProxies);
  const gathered = new WeakMap<FastifyRequest, RequestFacts>();
  app.decorateRequest("facts", {
    getter() {
      let facts = gathered.get(this);
      if (facts === undefined) {
        facts = factsOf(this, isTrusted, publicUrl);
        gathered.set(this, facts);
      }
      return facts;
    },
  });
}

type Test = (address: string) => boolean;

function factsOf(request: FastifyRequest, isTrusted: Test, publicUrl: string | undefined): RequestFacts {
  const { socket, headers } = request.raw;
  const peer = normalAddress(socket.remoteAddress ?? "") ?? "";
  const proxied = isTrusted(peer);
  const address = proxied ? clientAddress(headers, peer, isTrusted) : peer;
  const scheme = schemeOf(request, proxied);
  return {
    id: request.id,
    address,
    network: networkOf(address),
    get origin() {
      return publicUrl === undefined ? originOf(scheme, headers, proxied) : new URL(publicUrl);
    },
    get accept() {
      return acceptedTypes(headers.accept ?? "");
    },
    authorization: headers.authorization,
    secure: scheme === "https" || publicUrl?.startsWith("https:") === true,
  };
}

/** Parses `Accept` (RFC 9110, section 12.5.1). A malformed weight is treated as 0. */
function acceptedTypes(accept: string): Map<string, number> {
  return new Map(
    accept.split(",").map((range) => {
      const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
      return [type, /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(weight) ? Number(weight) : 0];
    }),
  );
}

/**
 * Returns the client's address from the headers of trusted proxies. X-Real-IP takes precedence, because it is the API's
 * own header for the address (rules section 3: X-Real-IP, else the peer). Otherwise, searches X-Forwarded-For from its
 * end, and returns the first address that is not a trusted proxy. A client can forge the entries before that address.
 * If both headers are missing or malformed, the last trusted proxy is treated as the client.
 *
 * A trusted proxy must set or remove both headers. If a proxy appends to X-Forwarded-For but forwards X-Real-IP
 * unchanged, clients can forge their address.
 */
function clientAddress(headers: IncomingHttpHeaders, peer: string, isTrusted: Test): string {
  const realIp = normalAddress(single(headers, "x-real-ip") ?? "");
  if (realIp !== undefined && !isTrusted(realIp)) return realIp;
  let nearest = realIp ?? peer;
  const hops = single(headers, "x-forwarded-for")?.split(",") ?? [];
  for (const hop of hops.reverse()) {
    const address = normalAddress(withoutPort(hop.trim()));
    if (address === undefined) return nearest;
    if (!isTrusted(address)) return address;
    nearest = address;
  }
  return nearest;
}

/** Remove the port, because some proxies write `203.0.113.7:50123` or `[2001:db8::7]:50123`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d{1,5})?$/.exec(hop)?.[1] ?? /^(\d[\d.]*):\d{1,5}$/.exec(hop)?.[1] ?? hop;
}

type Scheme = "http" | "https";

function schemeOf({ raw: { socket, headers } }: FastifyRequest, proxied: boolean): Scheme {
  const proto = proxied ? nearestOf(headers, "x-forwarded-proto")?.toLowerCase() : undefined;
  if (proto === "http" || proto === "https") return proto;
  return socket instanceof TLSSocket ? "https" : "http";
}

function originOf(scheme: Scheme, headers: IncomingHttpHeaders, proxied: boolean): URL {
  const forwarded = (name: string) => (proxied ? nearestOf(headers, name) : undefined);
  const host = forwarded("x-forwarded-host") ?? single(headers, "host") ?? "";
  const port = forwarded("x-forwarded-port") ?? "";
  const given = readHost(scheme, host);
  // If the host contains a port, ignore X-Forwarded-Port, because the client itself sent the port in the host.
  const complete =
    /^\d{1,5}$/.test(port) && !/:\d+$/.test(host) ? readHost(scheme, `${host}:${port}`) : given;
  return complete ?? given ?? new URL(`${scheme}://localhost`);
}

/** Parses a host with an optional port. Returns undefined for any other string. */
function readHost(scheme: Scheme, host: string): URL | undefined {
  return /^[^\s/?#@\\]+$/.test(host) && URL.canParse(`${scheme}://${host}`)
    ? new URL(`${scheme}://${host}`)
    : undefined;
}

/**
 * Returns the last entry of a header with several entries. Each proxy adds an entry at the end, so the nearest proxy
 * added the last entry.
 */
function nearestOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  return single(headers, name)?.split(",").at(-1)?.trim() || undefined;
}

function single(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}
