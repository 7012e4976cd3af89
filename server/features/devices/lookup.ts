import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import { inTransaction, type Transaction } from "../../db/sql/transaction.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { wireDate } from "../fields.ts";
import { tagNames, withTags } from "../tags/tagList.ts";
import { onlineSince } from "./online.ts";
import { presentDevice } from "./presentDevice.ts";

/** The namespace and the device in an SSH address such as `login@namespace.device@host`. */
export interface DeviceAddress {
  /** Name of the namespace. */
  readonly domain: string;
  readonly name: string;
}

/** The related rows (tags and namespace) that a query reads together with the device of an SSH address. */
export const withNamespace = { ...withTags, namespace: true } as const;

/**
 * Returns the accepted device of an SSH address, with its tags and namespace. Returns null if no accepted device has
 * the address. Call this function in a transaction, so that all data is from the same point in time.
 */
export async function findAddressed(tx: Transaction, { domain, name }: DeviceAddress) {
  const namespace = await tx.namespace.findUnique({ where: { name: domain.toLowerCase() } });
  if (namespace === null) return null;
  const { tenantId } = namespace;
  return tx.device.findFirst({
    where: { tenantId, name: name.toLowerCase(), status: "accepted" },
    include: withNamespace,
  });
}

/**
 * Returns the device of an SSH address: see {@link findAddressed}.
 * @throws NotFoundError the device does not exist
 */
export function addressedDevice(services: Services, address: DeviceAddress) {
  return inTransaction(services, async (tx) => {
    const device = await findAddressed(tx, address);
    if (device === null) throw new NotFoundError("no such device");
    return device;
  });
}

export const lookupDevice: Handler<InternalOperations["lookupDevice"]> = async ({ services, query }) => {
  const device = await addressedDevice(services, query);
  return presentDevice(device, tagNames(device.tags), {
    namespace: device.namespace.name,
    onlineSince: wireDate(onlineSince(services)),
    // The device is already accepted, so it cannot be accepted again.
    acceptable: false,
  });
};
