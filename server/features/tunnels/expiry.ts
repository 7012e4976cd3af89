import type { Services } from "../../services.ts";

/** Expiry of a tunnel that never expires: a time, so that one comparison finds all living tunnels. */
const NEVER = new Date("9999-12-31T23:59:59.999Z");

/** Expiry of a tunnel that lives for a number of seconds; -1: for ever. */
export const endOf = (createdAt: Date, ttl: number): Date =>
  ttl === -1 ? NEVER : new Date(createdAt.getTime() + ttl * 1000);

/** Filter of the tunnels that have not expired. */
export const living = (services: Services) => ({ expiresAt: { gt: services.now() } });

/** Deletes the expired tunnels. */
export async function removeExpiredTunnels(services: Services): Promise<void> {
  await services.db.tunnel.deleteMany({ where: { expiresAt: { lte: services.now() } } });
}
