import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { deleteRows, findRow, insertRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit } from "../../db/sql/sql.ts";
import { ConflictError, NotFoundError } from "../../errors.ts";
import type { ObjectWrite, WriteContext } from "../../http/handler.ts";
import { tagAdded, tagNames, tagRemoved, tagRows } from "../tags/tagList.ts";
import { type DeviceTags, declaredTags } from "./objects.ts";

/** The parts of a request that change a device's tags. */
type Change = Pick<
  WriteContext<PublicOperations["updateDeviceTags"], DeviceTags>,
  "services" | "identity" | "params" | "found" | "became"
>;

/**
 * Replaces a device's tags with the result of `next`. Tags that remain keep their Idempotency-Keys.
 * @param creationKey digest of the Idempotency-Key of the new tags
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
  // `tagsDeclaredBy` contains the program resource that declares the tags. A device without tags has no declared tags,
  // so the service clears this column.
  if (tags.length === 0 && found.declaredBy !== null)
    await updateRow(db, "Device", { uid }, { tagsDeclaredBy: null });
  became(declaredTags(tags));
}

/**
 * Adds a tag to a device. An Idempotency-Key that was used for another tag is rejected, because the empty response
 * cannot show which tag the key created.
 */
export const createDeviceTag: ObjectWrite<PublicOperations["createDeviceTag"], DeviceTags> = async (
  context,
) => {
  const { identity, params, body, creationKey } = context;
  const { tenant: tenantId } = identity;
  await createOnce(context, {
    taken: "tag: is already on the device",
    find: async (tx, key) => {
      const existing = await findRow(tx, "DeviceTag", { tenantId, creationKey: key });
      if (existing === null) return null;
      if (existing.deviceUid === params.uid && existing.tag === body.tag) return existing;
      throw new ConflictError(
        `Idempotency-Key: was already used to create the tag ${existing.tag} of the device ${existing.deviceUid}`,
      );
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
