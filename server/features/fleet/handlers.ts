import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Prisma } from "../../db/generated/sqlite/client.ts";
import { readRows, sql } from "../../db/sql/sql.ts";
import { InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { deviceCount } from "../devices/deviceCounts.ts";
import { onlineSince } from "../devices/online.ts";
import { readDevices } from "../devices/readDevices.ts";
import { countActive } from "../sessions/active.ts";

/**
 * Returns the uid of the device that matches a condition. If several devices match, returns the device with the latest
 * report.
 */
async function uidOf({ db }: Services, where: Prisma.DeviceWhereInput): Promise<string | undefined> {
  const found = await db.device.findFirst({
    where,
    select: { uid: true },
    orderBy: [{ lastSeen: "desc" }, { uid: "desc" }],
  });
  return found?.uid;
}

/**
 * Finds a device by its uid. If the uid is omitted, finds the device by its name, and ignores removed devices. If
 * several devices have the name, returns the accepted device. If none of them is accepted, returns the device with the
 * latest report.
 */
export const resolveDevice: Handler<PublicOperations["resolveDevice"]> = async (context) => {
  const { services, identity, query } = context;
  const { hostname } = query;
  const tenantId = identity.tenant;
  let { uid } = query;
  if (uid === undefined) {
    if (hostname === undefined) throw new InvalidError("uid, hostname: one of them is required");
    const name = hostname.toLowerCase();
    uid =
      (await uidOf(services, { tenantId, name, status: "accepted" })) ??
      (await uidOf(services, { tenantId, name, status: { not: "removed" } }));
  }
  const [device] = uid === undefined ? [] : await readDevices(services, tenantId, [uid]);
  if (!device) throw new NotFoundError("no such device");
  return device;
};

interface Counts {
  readonly accepted: number | bigint;
  readonly pending: number | bigint;
  readonly rejected: number | bigint;
  readonly online: number | bigint;
}

/**
 * Counts devices and sessions. The counts of devices include containers, but not removed devices (rules section 7,
 * models section 13). Online devices are counted again for each request, because their number depends on the time. The
 * count of online devices reads only an index, which contains all columns of the query. Without this index, the
 * database would read the row of each device, which takes ten times as long for a large fleet.
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
  if (counts === undefined) throw new Error("the database returned no device counts");
  return {
    registered_devices: Number(counts.accepted),
    online_devices: Number(counts.online),
    pending_devices: Number(counts.pending),
    rejected_devices: Number(counts.rejected),
    active_sessions: sessions,
  };
};
