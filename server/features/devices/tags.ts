import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { deleteRows, findRow, insertRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit } from "../../db/sql/sql.ts";
import { ConflictError, NotFoundError } from "../../errors.ts";
import type { ObjectWrite, WriteContext } from "../../http/handler.ts";
import { tagAdded, tagNames, tagRemoved, tagRows } from "../tags/tagList.ts";
import { type DeviceTags, declaredTags } from "./objects.ts";

/** The parts of a request that a change of a device's tags needs. */
type Change = Pick<
  WriteContext<PublicOperations["updateDeviceTags"], DeviceTags>,
  "services" | "identity" | "params" | "found" | "became"
>;

/**
 * Replaces a device's tags by the result of `next`. The order is kept, and so is the creation key of each tag that
 * stays.
 * @param creationKey creation key of the new tags
 */
async function changeTags(
  { services: { db }, identity, params, found, became }: Change,
  next: (tags: readonly string[]) => readonly string[],
  creationKey: string | null = null,
): Promise<void> {
  const { tenant: tenantId } = identity;
  const { uid } = params;
  if (found === null) throw new NotFoundError("no such device");
  const keys = new Map(found.tags.map((tag) => [tag.tag, tag.creationKey]));
  const tags = tagRows(next(tagNames(found.tags))).map((tag) => {
    const kept = keys.get(tag.tag);
    return { ...tag, deviceUid: uid, tenantId, creationKey: kept === undefined ? creationKey : kept };
  });
  if (found.tags.length > 0) await leaveToCommit(db, deleteRows(db, "DeviceTag", { deviceUid: uid }));
  await leaveToCommit(db, insertRows(db, "DeviceTag", tags));
  // Without tags there is nothing that anybody declares.
  if (tags.length === 0 && found.declaredBy !== null)
    await updateRow(db, "Device", { uid }, { tagsDeclaredBy: null });
  became(declaredTags(tags));
}

/** The response is empty and cannot show another tag, so a key that made another tag is refused. */
export const createDeviceTag: ObjectWrite<PublicOperations["createDeviceTag"], DeviceTags> = async (
  context,
) => {
  const { identity, params, body, creationKey } = context;
  const { tenant: tenantId } = identity;
  await createOnce(context, {
    taken: "tag: is on the device already",
    find: async (tx, key) => {
      const made = await findRow(tx, "DeviceTag", { tenantId, creationKey: key });
      if (made === null) return null;
      if (made.deviceUid === params.uid && made.tag === body.tag) return made;
      throw new ConflictError(`Idempotency-Key: made the tag ${made.tag} of the device ${made.deviceUid}`);
    },
    create: () => changeTags(context, (tags) => tagAdded(tags, body.tag, "device"), creationKey),
  });
  return undefined;
};

export const updateDeviceTags: ObjectWrite<PublicOperations["updateDeviceTags"], DeviceTags> = async (
  context,
) => {
  await changeTags(context, () => context.body.tags);
  return undefined;
};

export const deleteDeviceTag: ObjectWrite<PublicOperations["deleteDeviceTag"], DeviceTags> = async (
  context,
) => {
  await changeTags(context, (tags) => tagRemoved(tags, context.params.tag, "device"));
  return undefined;
};
