import type { InternalOperations, PublicOperations } from "@gatehouse-access/sdk/contract";
import { ForbiddenError, NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { UNPROVEN } from "./deviceProof.ts";

/** Marks a device as offline. The next report of the device removes the mark (rules section 7). */
async function markOffline(
  services: Services,
  device: { readonly uid: string; readonly tenantId?: string },
): Promise<void> {
  const { count } = await services.db.device.updateMany({
    where: { ...device, status: { not: "removed" } },
    data: { offline: true },
  });
  if (count === 0) throw new NotFoundError("no such device");
}

export const offlineDevice: Handler<PublicOperations["offlineDevice"]> = async (context) => {
  const { services, identity, params } = context;
  if ("uid" in identity && !identity.proven) throw new ForbiddenError(UNPROVEN);
  await markOffline(services, { uid: params.uid, tenantId: identity.tenant });
  return undefined;
};

/** Marks a device as offline at the request of a trusted service. The device can belong to any namespace. */
export const markDeviceOffline: Handler<InternalOperations["markDeviceOffline"]> = async (context) => {
  const { services, params } = context;
  await markOffline(services, { uid: params.uid });
  return undefined;
};
