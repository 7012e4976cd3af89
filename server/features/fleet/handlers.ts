import type { fleet, PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Prisma } from "../../db/generated/sqlite/client.ts";
import { InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler, Handlers } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { readDevices } from "../devices/readDevices.ts";
import { getStats } from "./stats.ts";

/** The uid of the device that meets a condition and reported last. */
async function uidOf({ db }: Services, where: Prisma.DeviceWhereInput): Promise<string | undefined> {
  const found = await db.device.findFirst({
    where,
    select: { uid: true },
    orderBy: [{ lastSeen: "desc" }, { uid: "desc" }],
  });
  return found?.uid;
}

/**
 * The uid takes precedence over the name. Pending and rejected devices may share a name: the accepted device is meant,
 * else the device that reported last. Removed devices' names do not count.
 */
export const resolveDevice: Handler<PublicOperations["resolveDevice"]> = async (context) => {
  const { services, identity, query } = context;
  const { hostname } = query;
  const tenantId = identity.tenant;
  let { uid } = query;
  if (uid === undefined) {
    if (hostname === undefined) throw new InvalidError("uid, hostname: one of them must be given");
    const name = hostname.toLowerCase();
    uid =
      (await uidOf(services, { tenantId, name, status: "accepted" })) ??
      (await uidOf(services, { tenantId, name, status: { not: "removed" } }));
  }
  const [device] = uid === undefined ? [] : await readDevices(services, tenantId, [uid]);
  if (!device) throw new NotFoundError("no such device");
  return device;
};

export const fleetHandlers: Handlers<Pick<PublicOperations, keyof typeof fleet & keyof PublicOperations>> = {
  resolveDevice,
  getStats,
};
