import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { readRows } from "../../db/sql/readRows.ts";
import { sql } from "../../db/sql/sql.ts";
import type { Handler } from "../../http/handler.ts";
import { deviceCount } from "../devices/deviceCounts.ts";
import { onlineSince } from "../devices/online.ts";
import { countActive } from "../sessions/active.ts";

interface Counts {
  readonly accepted: number | bigint;
  readonly pending: number | bigint;
  readonly rejected: number | bigint;
  readonly online: number | bigint;
}

/**
 * Containers count as devices, removed devices do not (rules section 7, models section 13). Who is online depends on the
 * time, so they are counted now, by an index alone: reading the rows of a large fleet takes ten times as long.
 */
export const getStats: Handler<PublicOperations["getStats"]> = async ({ services, identity }) => {
  const { tenant } = identity;
  const devices = (status: string) => deviceCount(tenant, { status });
  const online = sql`SELECT COUNT(*) FROM "Device" WHERE "Device"."tenantId" = ${tenant}
    AND "Device"."status" = 'accepted' AND "Device"."lastSeen" > ${onlineSince(services)}
    AND "Device"."offline" = ${false}`;
  const [[counts], sessions] = await Promise.all([
    readRows<Counts>(
      services.db,
      sql`SELECT (${devices("accepted")}) AS accepted, (${devices("pending")}) AS pending,
        (${devices("rejected")}) AS rejected, (${online}) AS online`,
    ),
    countActive(services, tenant),
  ]);
  if (counts === undefined) throw new Error("the database counted devices and told no count");
  return {
    registered_devices: Number(counts.accepted),
    online_devices: Number(counts.online),
    pending_devices: Number(counts.pending),
    rejected_devices: Number(counts.rejected),
    active_sessions: sessions,
  };
};
