import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handler } from "../../http/routes.ts";
import { onlineSince } from "../devices/online.ts";
import { sql } from "../lists/sql.ts";
import { countActive } from "../sessions/active.ts";

interface Counts {
  readonly status: string;
  readonly devices: number | bigint;
  readonly online: number | bigint;
}

/** A container is a device, so it counts as one; removed devices are gone (rules section 7, models section 13). */
export const getStats: Handler<PublicOperations["getStats"]> = async ({ services, identity }) => {
  const { tenant } = identity;
  const [rows, sessions] = await Promise.all([
    services.db.$queryRaw<Counts[]>(
      sql`SELECT "Device"."status" AS status, COUNT(*) AS devices,
          COUNT(CASE WHEN "Device"."lastSeen" > ${onlineSince(services)} AND "Device"."offline" = ${false}
            THEN 1 END) AS online
        FROM "Device" WHERE "Device"."tenantId" = ${tenant} GROUP BY "Device"."status"`,
    ),
    countActive(services, tenant),
  ]);
  const of = (status: string) => rows.find((row) => row.status === status);
  const devices = (status: string) => Number(of(status)?.devices ?? 0);
  return {
    registered_devices: devices("accepted"),
    online_devices: Number(of("accepted")?.online ?? 0),
    pending_devices: devices("pending"),
    rejected_devices: devices("rejected"),
    active_sessions: sessions,
  };
};
