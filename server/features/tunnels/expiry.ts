import type { Services } from "../../services.ts";

/** Which tunnels have not ended. */
export const living = (services: Services) => ({
  OR: [{ expiresAt: null }, { expiresAt: { gt: services.now() } }],
});

/** Removes the tunnels that have ended. */
export async function removeEndedTunnels(services: Services): Promise<void> {
  await services.db.tunnel.deleteMany({ where: { expiresAt: { lte: services.now() } } });
}
