import type { IncomingHttpHeaders } from "node:http";
import { TLSSocket } from "node:tls";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { addressMatcher, networkOf, normalAddress } from "../addresses.ts";
import { InvalidError } from "../errors.ts";
import type { ServiceSettings } from "../services.ts";

/**
 * Where a request comes from and what it was sent to. What proxies say in headers is decided here, once, and
 * believed of trusted ones alone: anybody else could choose it (rules section 3).
 */
export interface RequestFacts {
  /** The request's id, which the answer carries as X-Request-ID and the log has too. */
  readonly id: string;
  /** IP address of the client, IPv4 in its dotted form; empty when the connection is gone already. */
  readonly address: string;
  /** The address as lockouts and limits count it: of IPv6 the /64. */
  readonly network: string;
  /** Scheme, host and port at which clients reach the service: the configured ones, else those of the request. */
  readonly origin: URL;
  /** Media types that the client names, in lower case and without parameters, and how much it wants each: 0 to 1. */
  readonly accept: ReadonlyMap<string, number>;
  /** Clients reach the service by TLS, here or at a proxy. */
  readonly secure: boolean;
}

declare module "fastify" {
  interface FastifyRequest {
    readonly facts: RequestFacts;
  }
}

/**
 * Refuses a request with more than one `Host` (RFC 9112, section 3.2): a proxy may have gone by another one than the
 * service would. Node refuses a request of HTTP/1.1 without any.
 */
export function requireOneHost(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    done(hostsOf(request.raw.rawHeaders) > 1 ? new InvalidError("Host: must be given once") : undefined);
  });
}

/** @param headers names and values in turn, as they came: by their names Node keeps the first one alone */
function hostsOf(headers: readonly string[]): number {
  let hosts = 0;
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts;
}

/** Gives every request its `facts`. */
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
    secure: scheme === "https" || publicUrl?.startsWith("https:") === true,
  };
}

/** Reads `Accept` (RFC 9110, section 12.5.1). A weight that is none counts as 0: it cannot be known what was meant. */
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
 * The address that the proxies name: X-Real-IP, which wins because it is the wire's own header for that (rules section
 * 3: X-Real-IP, else the peer); else the last one of X-Forwarded-For that is no trusted proxy, since what stands before
 * it may be anybody's invention. Where both are missing, or not to be read, the last proxy whose word was good counts
 * as the client. A trusted proxy must set or remove both: one that adds to X-Forwarded-For and lets its clients'
 * X-Real-IP through lets them choose their address.
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

/** Some proxies write `203.0.113.7:50123` or `[2001:db8::7]:50123`. */
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
  // A port that the host names is what the client itself wrote.
  const complete =
    /^\d{1,5}$/.test(port) && !/:\d+$/.test(host) ? readHost(scheme, `${host}:${port}`) : given;
  return complete ?? given ?? new URL(`${scheme}://localhost`);
}

/** Undefined for text that is more than host and port. */
function readHost(scheme: Scheme, host: string): URL | undefined {
  return /^[^\s/?#@\\]+$/.test(host) && URL.canParse(`${scheme}://${host}`)
    ? new URL(`${scheme}://${host}`)
    : undefined;
}

/** Of a list that proxies add to, what the nearest one wrote. */
function nearestOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  return single(headers, name)?.split(",").at(-1)?.trim() || undefined;
}

function single(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}
