import type { containers, PublicOperations } from "@gatehouse-access/sdk/contract";
import { findRow } from "../../db/sql/rows.ts";
import { NotFoundError } from "../../errors.ts";
import type { Handlers } from "../../http/handler.ts";
import type { SqlServices } from "../../services.ts";
import type { ObjectRows } from "../objects.ts";
import { CONTAINER, deleteDevice, getDevice, listDevices, updateDevice } from "./devices.ts";
import { updateDeviceStatus } from "./status.ts";
import { createDeviceTag, deleteDeviceTag, updateDeviceTags } from "./tags.ts";

interface OfOne {
  readonly services: SqlServices;
  readonly identity: { readonly tenant: string };
  readonly params: { readonly uid: string };
}

/**
 * Checks that a container exists.
 * @throws NotFoundError the namespace does not contain the container
 */
async function checkContainer({ services, identity, params }: OfOne): Promise<void> {
  const key = { uid: params.uid, tenantId: identity.tenant, infoPlatform: CONTAINER };
  if (!(await findRow(services.db, "Device", key))) throw new NotFoundError("no such container");
}

/**
 * Restricts a device operation to containers. A container is a device, so the device operations themselves also accept
 * containers. Some operations (accept, rename) have no separate path for containers (rules section 7).
 * @throws NotFoundError the namespace does not contain the container
 */
function ofContainer<C extends OfOne, R>(handler: (context: C) => Promise<R>): (context: C) => Promise<R> {
  return async (context) => {
    await checkContainer(context);
    return handler(context);
  };
}

export const containerHandlers: Handlers<
  Pick<PublicOperations, keyof typeof containers & keyof PublicOperations>,
  ObjectRows
> = {
  getContainers: (context) => listDevices(context, true),
  getContainer: ofContainer(getDevice),
  deleteContainer: ofContainer(deleteDevice),
  updateContainer: ofContainer(updateDevice),
  updateContainerStatus: ofContainer(updateDeviceStatus),
  createContainerTag: ofContainer(createDeviceTag),
  updateContainerTags: ofContainer(updateDeviceTags),
  deleteContainerTag: ofContainer(deleteDeviceTag),
};
