import { SECOND } from "@gatehouse-access/sdk/times";
import type { Services } from "../../services.ts";

/**
 * Expiry of a permanent tunnel: a time in the far future, so that one comparison finds all tunnels that have not
 * expired.
 */
const NEVER = new Date("9999-12-31T23:59:59.999Z");

/** Returns the expiry of a tunnel with this lifetime in seconds. A lifetime of -1 is permanent. */
export const tunnelExpiry = (createdAt: Date, ttl: number): Date =>
  ttl === -1 ? NEVER : new Date(createdAt.getTime() + ttl * SECOND);

/** Returns a filter for the tunnels that have not expired. */
export const living = (services: Services) => ({ expiresAt: { gt: services.now() } });

/** Deletes the expired tunnels. */
export async function removeExpiredTunnels(services: Services): Promise<void> {
  await services.db.tunnel.deleteMany({ where: { expiresAt: { lte: services.now() } } });
}
