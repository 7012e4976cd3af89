import type { fleet, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Prisma } from "../../db/generated/sqlite/client.ts";
import { InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler, Handlers } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { presentOneDevice } from "../devices/devices.ts";
import { withTags } from "../tags/tagList.ts";
import { getStats } from "./stats.ts";

async function findDevice(services: Services, where: Prisma.DeviceWhereInput) {
  return services.db.device.findFirst({
    where,
    include: { ...withTags, namespace: true },
    orderBy: [{ lastSeen: "desc" }, { uid: "desc" }],
  });
}

/**
 * The uid takes precedence over the name. Pending and rejected devices may share a name: the accepted device is meant,
 * else the device that reported last. Removed devices' names do not count.
 */
export const resolveDevice: Handler<PublicOperations["resolveDevice"]> = async (context) => {
  const { services, identity, query } = context;
  const { uid, hostname } = query;
  const tenantId = identity.tenant;
  let row: Awaited<ReturnType<typeof findDevice>>;
  if (uid !== undefined) {
    row = await findDevice(services, { tenantId, uid });
  } else if (hostname !== undefined) {
    const name = hostname.toLowerCase();
    row =
      (await findDevice(services, { tenantId, name, status: "accepted" })) ??
      (await findDevice(services, { tenantId, name, status: { not: "removed" } }));
  } else {
    throw new InvalidError("uid, hostname: one of them must be given");
  }
  if (!row) throw new NotFoundError("no such device");
  return presentOneDevice(services, row);
};

export const fleetHandlers: Handlers<Pick<PublicOperations, keyof typeof fleet & keyof PublicOperations>> = {
  resolveDevice,
  getStats,
};
