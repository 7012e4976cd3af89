import { DAY } from "@gatehouse-access/sdk/times";
import { recordChange } from "../changes/recordChange.ts";
import { readRows, sql } from "../db/sql/sql.ts";
import { inTransaction, within } from "../db/sql/transaction.ts";
import type { Services } from "../services.ts";
import { objects } from "./objects.ts";

/** The kinds of objects that expire, with the columns for the id and the expiry time. */
const KINDS = [
  { kind: "publicKey", model: "PublicKey", id: "fingerprint", end: "expiresAt" },
  { kind: "firewallRule", model: "FirewallRule", id: "id", end: "expiresAt" },
  { kind: "member", model: "Member", id: "userId", end: "accessExpiresAt" },
] as const;

/**
 * Deletes keys, rules and memberships that no program declares, after they have been expired for longer than the
 * configured retention. The actor in the audit trail is the operator, because a setting of the operator causes the
 * deletion.
 */
export async function removeExpiredObjects(services: Services): Promise<void> {
  const days = services.settings.expiredObjectRetention;
  if (days === 0) return;
  const before = new Date(services.accessTime().getTime() - days * DAY);
  for (const { kind, model, id: idColumn, end } of KINDS) {
    const table = sql.column(model);
    const expired = sql`"declaredBy" IS NULL AND ${sql.column(end)} <= ${before}`;
    const rows = await readRows<{ readonly tenantId: string; readonly id: string | number | bigint }>(
      services.db,
      sql`SELECT "tenantId", ${sql.column(idColumn)} AS "id" FROM ${table} WHERE ${expired}`,
    );
    for (const { tenantId, id } of rows) {
      await inTransaction(services, async (tx) => {
        const found = await objects[kind].find(tx, tenantId, String(id));
        const isRow = sql`"tenantId" = ${tenantId} AND ${sql.column(idColumn)} = ${id}`;
        // The statement repeats the condition, because the object may have changed since the query.
        const deleted = await tx.$executeRaw(sql`DELETE FROM ${table} WHERE ${isRow} AND ${expired}`);
        if (found === null || deleted === 0) return;
        await recordChange(within(services, tx), {
          tenantId,
          caller: { kind: "operator" },
          request: { id: "", address: "" },
          operation: "removeExpiredObject",
          object: { kind, id: String(id) },
          before: objects[kind].declared(found),
          after: null,
        });
      });
    }
  }
}
