import fastifyCors from "@fastify/cors";
import type { FastifyInstance } from "fastify";
import "./declaredAccess.ts";
import { DECLARED_BY, IDEMPOTENCY_KEY, LOCKOUT_GUARD, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";

/** Response headers that pages of other origins may read (rules section 3). */
const EXPOSED = [
  TOTAL_COUNT,
  "X-Account-Lockout",
  "X-MFA-Token",
  "X-Expires-At",
  "ETag",
  "X-Request-ID",
  "Retry-After",
  LOCKOUT_GUARD,
];
/** Maximum time for which browsers cache the response to a preflight request, in seconds. */
const PREFLIGHT_AGE = 600;

/**
 * Allows pages of the given origins to call the service. Without origins, no page of another origin may call it. The
 * service sets no cookies, so a page must send a token or an API key.
 */
export async function allowOrigins(app: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  app.addHook("onRoute", (route) => {
    // The plugin adds its own route for preflight requests, and cannot declare the access of this route. So the access
    // is declared here.
    if (route.method === "OPTIONS" && route.url === "*") {
      route.config = { ...route.config, publicBecause: "browser preflight request for the allowed origins" };
    }
  });
  await app.register(fastifyCors, {
    origin: [...origins],
    methods: ["GET", "POST", "PUT", "PATCH", "DELETE"],
    allowedHeaders: [
      "Authorization",
      "Content-Type",
      "If-Match",
      "X-API-Key",
      IDEMPOTENCY_KEY,
      DECLARED_BY,
      LOCKOUT_GUARD,
    ],
    exposedHeaders: EXPOSED,
    credentials: false,
    maxAge: PREFLIGHT_AGE,
    strictPreflight: false,
  });
}
