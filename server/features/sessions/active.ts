import type { Session } from "../../db/generated/sqlite/client.ts";
import type { Services } from "../../services.ts";

/** How long a keep-alive counts, in milliseconds; one is sent every 30 seconds (rules section 17.3). */
const ACTIVE_WINDOW = 90_000;

/** A session is active if it is authenticated, not closed, and was kept alive after this moment. */
export function activeSince(services: Services): Date {
  return new Date(services.now().getTime() - ACTIVE_WINDOW);
}

/** @param since see {@link activeSince} */
export function isActive(
  { authenticated, closedAt, lastSeen }: Pick<Session, "authenticated" | "closedAt" | "lastSeen">,
  since: Date,
): boolean {
  return authenticated && closedAt === null && lastSeen > since;
}

/** Number of active sessions in a namespace. */
export function countActive(services: Services, tenantId: string): Promise<number> {
  return services.db.session.count({
    where: { tenantId, authenticated: true, closedAt: null, lastSeen: { gt: activeSince(services) } },
  });
}
