import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { ConflictError, ForbiddenError, NotFoundError } from "../../http/errors.ts";
import type { Handler } from "../../http/routes.ts";
import type { Services } from "../../services.ts";
import { inTransaction } from "../transaction.ts";

/** Most tags of one device (rules section 16.2). */
const MAXIMUM_TAGS = 3;

/** Replaces a device's tags by what `next` makes of them; the order is kept. */
function changeTags(
  services: Services,
  tenantId: string,
  uid: string,
  next: (tags: readonly string[]) => readonly string[],
): Promise<void> {
  return inTransaction(services, async (tx) => {
    const device = await tx.device.findUnique({
      where: { uid, tenantId },
      select: { tags: { orderBy: { position: "asc" }, select: { tag: true } } },
    });
    if (!device) throw new NotFoundError("no such device");
    const tags = next(device.tags.map((row) => row.tag));
    await tx.deviceTag.deleteMany({ where: { deviceUid: uid } });
    await tx.deviceTag.createMany({
      data: tags.map((tag, position) => ({ deviceUid: uid, tenantId, tag, position })),
    });
  });
}

export const createDeviceTag: Handler<PublicOperations["createDeviceTag"]> = async (context) => {
  const { services, identity, params, body } = context;
  await changeTags(services, identity.tenant, params.uid, (tags) => {
    if (tags.includes(body.tag)) throw new ConflictError("tag: is on the device already");
    if (tags.length >= MAXIMUM_TAGS)
      throw new ForbiddenError(`a device may have ${MAXIMUM_TAGS} tags at most`);
    return [...tags, body.tag];
  });
  return undefined;
};

export const updateDeviceTags: Handler<PublicOperations["updateDeviceTags"]> = async (context) => {
  const { services, identity, params, body } = context;
  await changeTags(services, identity.tenant, params.uid, () => body.tags);
  return undefined;
};

export const deleteDeviceTag: Handler<PublicOperations["deleteDeviceTag"]> = async (context) => {
  const { services, identity, params } = context;
  await changeTags(services, identity.tenant, params.uid, (tags) => {
    if (!tags.includes(params.tag)) throw new NotFoundError("tag: is not on the device");
    return tags.filter((tag) => tag !== params.tag);
  });
  return undefined;
};
