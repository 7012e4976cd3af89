import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { inTransaction } from "../../db/transaction.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { tagNames, withTags } from "../tags/tagList.ts";
import { wireDate } from "../wireDate.ts";
import { onlineSince } from "./online.ts";
import { presentDevice } from "./presentDevice.ts";

/** A device as an SSH address names it. */
interface DeviceAddress {
  /** Name of the namespace. */
  readonly domain: string;
  readonly name: string;
}

/**
 * The accepted device that an SSH address names, with its tags and namespace, all read at one moment. Names are stored
 * in lower case.
 * @throws NotFoundError no such device
 */
export function addressedDevice(services: Services, { domain, name }: DeviceAddress) {
  return inTransaction(services, async (tx) => {
    const namespace = await tx.namespace.findUnique({ where: { name: domain.toLowerCase() } });
    const device =
      namespace &&
      (await tx.device.findFirst({
        where: { tenantId: namespace.tenantId, name: name.toLowerCase(), status: "accepted" },
        include: withTags,
      }));
    if (!device) throw new NotFoundError("no such device");
    return { ...device, namespace };
  });
}

export const lookupDevice: Handler<InternalOperations["lookupDevice"]> = async ({ services, query }) => {
  const device = await addressedDevice(services, query);
  return presentDevice(device, tagNames(device.tags), {
    namespace: device.namespace.name,
    onlineSince: wireDate(onlineSince(services)),
    // The device is accepted already.
    acceptable: false,
  });
};
