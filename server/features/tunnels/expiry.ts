import type { Services } from "../../services.ts";

/** Until when a tunnel without an end lives: a time, so that one comparison finds those that have not ended. */
const NEVER = new Date("9999-12-31T23:59:59.999Z");

/** When a tunnel ends that is made now and lives so many seconds, -1: for ever. */
export const endOf = (createdAt: Date, ttl: number): Date =>
  ttl === -1 ? NEVER : new Date(createdAt.getTime() + ttl * 1000);

/** Which tunnels have not ended. */
export const living = (services: Services) => ({ expiresAt: { gt: services.now() } });

/** Removes the tunnels that have ended. */
export async function removeEndedTunnels(services: Services): Promise<void> {
  await services.db.tunnel.deleteMany({ where: { expiresAt: { lte: services.now() } } });
}
