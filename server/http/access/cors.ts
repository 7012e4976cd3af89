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
/** Maximum time, in seconds, for which browsers cache the response to a preflight request. */
const PREFLIGHT_AGE = 600;

/**
 * Allows pages of the given origins to call the service. If no origins are given, only pages of the service's own
 * origin can call it. The service sets no cookies, so a page must send a token or an API key.
 */
export async function allowOrigins(app: FastifyInstance, origins: readonly string[]): Promise<void> {
  if (origins.length === 0) return;
  app.addHook("onRoute", (route) => {
    // Declare the access of preflight requests here, because the plugin adds its own route for them and cannot declare
    // the access itself.
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
