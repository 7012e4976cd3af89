import type { FastifyInstance } from "fastify";
import "./requestFacts.ts";

/**
 * Headers of every response, for browsers: responses are data and must not be stored. The service has its own list,
 * because most headers in the lists of libraries are for pages. The service's few pages have their own, less strict
 * policy.
 */
const ALWAYS = {
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
} as const;

/** Time, in seconds, for which browsers must use only TLS for the service. The value is one year. */
const HSTS = "max-age=31536000";

/**
 * Returns the headers of a response.
 * @param secure true if clients reach the service by TLS
 */
export function securityHeaders(requestId: string, secure: boolean): Record<string, string> {
  return {
    "X-Request-ID": requestId,
    ...ALWAYS,
    ...(secure && { "Strict-Transport-Security": HSTS }),
  };
}

/** Adds the headers to every response. Call this function before adding any hook that may reject the request. */
export function sendSecurityHeaders(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(securityHeaders(request.id, request.facts.secure));
  });
}
