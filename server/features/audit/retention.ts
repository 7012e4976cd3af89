import type { Services } from "../../services.ts";

const DAY = 24 * 60 * 60_000;

/**
 * Removes what is older than the trail is kept for.
 * @param days 0: for ever
 */
export async function trimAuditTrail(services: Services, days: number): Promise<void> {
  if (days === 0) return;
  await services.db.auditEntry.deleteMany({
    where: { at: { lt: new Date(services.now().getTime() - days * DAY) } },
  });
}
