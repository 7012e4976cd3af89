import type { audit, Operations } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { AuditEntry } from "../../db/generated/sqlite/client.ts";
import type { Handler, Handlers } from "../../http/routes.ts";
import { wireDate } from "../wireDate.ts";

type WireEntry = z.output<typeof audit.auditEntry>;

function presentAuditEntry(row: AuditEntry): WireEntry {
  const json = (text: string | null): unknown => (text === null ? null : JSON.parse(text));
  return {
    id: row.id,
    at: wireDate(row.at),
    actor: { kind: row.actorKind as WireEntry["actor"]["kind"], id: row.actorId, name: row.actorName },
    address: row.address,
    request_id: row.requestId,
    operation: row.operation,
    object: { kind: row.objectKind, id: row.objectId },
    before: json(row.before),
    after: json(row.after),
  };
}

const getAuditTrail: Handler<Operations["getAuditTrail"]> = async (context) => {
  const { services, identity, query, header } = context;
  const where = {
    tenantId: identity.tenant,
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
      orderBy: { id: "desc" },
      skip: (query.page - 1) * query.per_page,
      take: query.per_page,
    }),
  ]);
  header("X-Total-Count", total);
  return rows.map(presentAuditEntry);
};

export const auditHandlers: Handlers<Pick<Operations, keyof typeof audit & keyof Operations>> = {
  getAuditTrail,
};
