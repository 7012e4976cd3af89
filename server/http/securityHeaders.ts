import type { FastifyInstance } from "fastify";
import "./requestFacts.ts";

/**
 * What browsers must know of every answer: it is data, and none of it may be kept. Plain headers: most of what
 * ready-made collections send speaks of pages. The few pages say what else they may, in a policy of their own.
 */
const ALWAYS = {
  "X-Content-Type-Options": "nosniff",
  "Cache-Control": "no-store",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
} as const;

/** A year, in seconds. */
const HSTS = "max-age=31536000";

/** @param secure clients reach the service by TLS */
export function securityHeaders(requestId: string, secure: boolean): Record<string, string> {
  return {
    "X-Request-ID": requestId,
    ...ALWAYS,
    ...(secure && { "Strict-Transport-Security": HSTS }),
  };
}

/** Gives every answer the headers; before anything that may refuse the request. */
export function sendSecurityHeaders(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(securityHeaders(request.id, request.facts.secure));
  });
}
