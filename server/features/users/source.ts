import { isIPv4 } from "node:net";
import type { RequestFacts } from "../../http/routes.ts";
import type { ServiceSettings } from "../../services.ts";

/**
 * Where a request comes from, for lockouts: the other end of the connection, or what a known proxy says of it.
 * Anybody else could choose its source with a header (rules section 3).
 */
export function sourceOf(settings: ServiceSettings, request: RequestFacts): string {
  const { peer, realIp } = request;
  return realIp && isIPv4(realIp) && settings.trustedProxies.includes(peer) ? realIp : peer;
}
