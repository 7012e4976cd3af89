import type { Services } from "../../services.ts";
import { activeSince } from "../sessions/active.ts";

/** How many SSH sessions of a namespace are going on. */
export function activeSessions(services: Services, tenantId: string): Promise<number> {
  return services.db.session.count({
    where: { tenantId, authenticated: true, closedAt: null, lastSeen: { gt: activeSince(services) } },
  });
}
