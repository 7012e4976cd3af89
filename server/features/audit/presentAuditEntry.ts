import type { audit } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { AuditEntry } from "../../db/generated/sqlite/client.ts";
import { wireDate } from "../wireDate.ts";

/** The wire format of an audit trail entry. */
export type WireEntry = z.output<typeof audit.auditEntry>;

/** Converts an audit trail entry to its wire format. */
export function presentAuditEntry(row: AuditEntry): WireEntry {
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
    ...(row.declaredBy !== null && { declared_by: JSON.parse(row.declaredBy) }),
  };
}
