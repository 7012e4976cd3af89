import type { Session } from "../../db/generated/sqlite/client.ts";
import type { Services } from "../../services.ts";

/**
 * Maximum age of an active session's last keep-alive, in milliseconds. The SSH server sends a keep-alive every 30
 * seconds (rules section 17.3).
 */
const ACTIVE_WINDOW = 90_000;

/**
 * Returns the time after which a session must have sent its last keep-alive to be active. An active session must also
 * be authenticated and not closed.
 */
export function activeSince(services: Services): Date {
  return new Date(services.now().getTime() - ACTIVE_WINDOW);
}

/**
 * Returns true if a session is active.
 * @param since see {@link activeSince}
 */
export function isActive(
  { authenticated, closedAt, lastSeen }: Pick<Session, "authenticated" | "closedAt" | "lastSeen">,
  since: Date,
): boolean {
  return authenticated && closedAt === null && lastSeen > since;
}

/** Returns the number of active sessions in a namespace. */
export function countActive(services: Services, tenantId: string): Promise<number> {
  return services.db.session.count({
    where: { tenantId, authenticated: true, closedAt: null, lastSeen: { gt: activeSince(services) } },
  });
}
