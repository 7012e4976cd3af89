import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { inTransaction, type Transaction } from "../../db/transaction.ts";
import { ConflictError, NotFoundError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { tagAdded, tagNames, tagRemoved, tagRows, withTags } from "../tags/tagList.ts";

/**
 * Replaces a device's tags by the result of `next`. The order is kept, and so is the creation key of each tag that
 * stays.
 * @param creationKey creation key of the new tags
 */
async function changeTags(
  tx: Transaction,
  device: { readonly tenantId: string; readonly uid: string },
  next: (tags: readonly string[]) => readonly string[],
  creationKey: string | null = null,
): Promise<void> {
  const { tenantId, uid } = device;
  const row = await tx.device.findUnique({
    where: { uid, tenantId },
    select: { ...withTags, tagsDeclaredBy: true },
  });
  if (!row) throw new NotFoundError("no such device");
  const keys = new Map(row.tags.map((tag) => [tag.tag, tag.creationKey]));
  const tags = tagRows(next(tagNames(row.tags))).map((tag) => {
    const kept = keys.get(tag.tag);
    return { ...tag, deviceUid: uid, tenantId, creationKey: kept === undefined ? creationKey : kept };
  });
  await tx.deviceTag.deleteMany({ where: { deviceUid: uid } });
  await tx.deviceTag.createMany({ data: tags });
  // Without tags there is nothing that anybody declares.
  if (tags.length === 0 && row.tagsDeclaredBy !== null)
    await tx.device.update({ where: { uid }, data: { tagsDeclaredBy: null } });
}

/** The response is empty and cannot show another tag, so a key that made another tag is refused. */
export const createDeviceTag: Handler<PublicOperations["createDeviceTag"]> = async (context) => {
  const { identity, params, body, creationKey } = context;
  const device = { tenantId: identity.tenant, uid: params.uid };
  return createOnce<undefined>(context, {
    taken: "tag: is on the device already",
    find: async (tx, key) => {
      const where = { tenantId_creationKey: { tenantId: device.tenantId, creationKey: key } };
      const made = await tx.deviceTag.findUnique({ where });
      if (made === null) return null;
      if (made.deviceUid === device.uid && made.tag === body.tag) return undefined;
      throw new ConflictError(`Idempotency-Key: made the tag ${made.tag} of the device ${made.deviceUid}`);
    },
    create: async (tx) => {
      await changeTags(tx, device, (tags) => tagAdded(tags, body.tag, "device"), creationKey);
      return undefined;
    },
  });
};

export const updateDeviceTags: Handler<PublicOperations["updateDeviceTags"]> = async (context) => {
  const { services, identity, params, body } = context;
  const device = { tenantId: identity.tenant, uid: params.uid };
  await inTransaction(services, (tx) => changeTags(tx, device, () => body.tags));
  return undefined;
};

export const deleteDeviceTag: Handler<PublicOperations["deleteDeviceTag"]> = async (context) => {
  const { services, identity, params } = context;
  const device = { tenantId: identity.tenant, uid: params.uid };
  await inTransaction(services, (tx) =>
    changeTags(tx, device, (tags) => tagRemoved(tags, params.tag, "device")),
  );
  return undefined;
};
