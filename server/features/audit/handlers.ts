import type { audit, Operations } from "@gatehouse-access/sdk/contract";
import type { Handler, Handlers } from "../../http/handler.ts";
import { pageOf } from "../../lists/page.ts";
import type { Services } from "../../services.ts";
import { presentAuditEntry } from "./presentAuditEntry.ts";

const getAuditTrail: Handler<Operations["getAuditTrail"]> = async (context) => {
  const { services, identity, query, header } = context;
  const { tenant } = identity;
  const where = {
    // The condition is a range with a single value. With an equality, PostgreSQL may scan the primary key backwards and
    // read the latest entries of all namespaces.
    tenantId: { gte: tenant, lte: tenant },
    ...((query.since || query.until) && {
      at: {
        ...(query.since && { gte: new Date(query.since) }),
        ...(query.until && { lt: new Date(query.until) }),
      },
    }),
    ...(query.kind && { objectKind: query.kind }),
    ...(query.object && { objectId: query.object }),
  };
  const [total, rows] = await Promise.all([
    services.db.auditEntry.count({ where }),
    services.db.auditEntry.findMany({
      where,
      orderBy: [{ tenantId: "desc" }, { id: "desc" }],
      ...pageOf(query),
    }),
  ]);
  header("X-Total-Count", total);
  return rows.map(presentAuditEntry);
};

export const auditHandlers: Handlers<Pick<Operations, keyof typeof audit & keyof Operations>> = {
  getAuditTrail,
};

const DAY = 24 * 60 * 60_000;

/** Deletes the audit trail entries that are older than the configured retention. */
export async function trimAuditTrail(services: Services): Promise<void> {
  const days = services.settings.auditRetention;
  if (days === 0) return;
  await services.db.auditEntry.deleteMany({
    where: { at: { lt: new Date(services.now().getTime() - days * DAY) } },
  });
}
