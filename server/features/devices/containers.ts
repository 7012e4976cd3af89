import type { containers, PublicOperations } from "@gatehouse-access/sdk/contract";
import { NotFoundError } from "../../errors.ts";
import type { Handlers } from "../../http/handler.ts";
import type { Services } from "../../services.ts";
import { CONTAINER, deleteDevice, getContainers, getDevice, updateDevice } from "./devices.ts";
import { updateDeviceStatus } from "./status.ts";
import { createDeviceTag, deleteDeviceTag, updateDeviceTags } from "./tags.ts";

interface OfOne {
  readonly services: Services;
  readonly identity: { readonly tenant: string };
  readonly params: { readonly uid: string };
}

/**
 * Restricts a device's operation to containers. The operations of devices are not restricted in turn: a container is a
 * device, and some operations (accept, rename) have no path of their own for it (rules section 7).
 * @throws NotFoundError no such container in the namespace
 */
function ofContainer<C extends OfOne, R>(handler: (context: C) => Promise<R>): (context: C) => Promise<R> {
  return async (context) => {
    const { services, identity, params } = context;
    const where = { uid: params.uid, tenantId: identity.tenant, infoPlatform: CONTAINER };
    if ((await services.db.device.count({ where })) === 0) throw new NotFoundError("no such container");
    return handler(context);
  };
}

export const containerHandlers: Handlers<
  Pick<PublicOperations, keyof typeof containers & keyof PublicOperations>
> = {
  getContainers,
  getContainer: ofContainer(getDevice),
  deleteContainer: ofContainer(deleteDevice),
  updateContainer: ofContainer(updateDevice),
  updateContainerStatus: ofContainer(updateDeviceStatus),
  createContainerTag: ofContainer(createDeviceTag),
  updateContainerTags: ofContainer(updateDeviceTags),
  deleteContainerTag: ofContainer(deleteDeviceTag),
};
