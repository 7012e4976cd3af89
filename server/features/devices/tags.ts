import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/writeObject.ts";
import { deleteRows, insertRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, readRows, type SqlClient, sql } from "../../db/sql/sql.ts";
import { ConflictError } from "../../errors.ts";
import type { ObjectWrite, WriteContext } from "../../http/handler.ts";
import { tagAdded, tagNames, tagRemoved, tagRows } from "../tags/tagList.ts";
import { addTags, tagId } from "../tags/tagTables.ts";
import type { DeviceTags } from "./objects.ts";

/** The parts of a request that change a device's tags. */
type Change = Pick<
  WriteContext<PublicOperations["updateDeviceTags"], DeviceTags>,
  "services" | "identity" | "params" | "declaration" | "found" | "became"
>;

/**
 * Replaces a device's tags with the result of `next`. Tags that the device keeps also keep their Idempotency-Keys.
 * @param creationKey digest of the Idempotency-Key of the new tags
 */
async function changeTags(
  { services: { db }, identity, params, declaration, found, became }: Change,
  next: (tags: readonly string[]) => readonly string[],
  creationKey: string | null = null,
): Promise<void> {
  const { tenant: tenantId } = identity;
  const { uid } = params;
  const stored = found();
  const keys = new Map(stored.tags.map((tag) => [tag.tag, tag.creationKey]));
  const tags = tagRows(next(tagNames(stored.tags)));
  const uses = tags.map(({ tag, position }) => {
    const kept = keys.get(tag);
    return {
      deviceUid: uid,
      tenantId,
      tagId: tagId(tenantId, tag),
      position,
      creationKey: kept === undefined ? creationKey : kept,
    };
  });
  await addTags(
    db,
    tenantId,
    tagNames(tags).filter((tag) => !keys.has(tag)),
  );
  if (stored.hasRows) await leaveToCommit(db, deleteRows(db, "DeviceTagUse", { deviceUid: uid }));
  await leaveToCommit(db, insertRows(db, "DeviceTagUse", uses));
  // `tagsDeclaredBy` contains the program resource that declares the tags. If the device has no tags, the column has no
  // meaning, because deleting a tag does not change it. Therefore, adding the first tag clears the column, unless the
  // request declares the tag.
  const isVoid = tags.length === 0 || (stored.tags.length === 0 && declaration === null);
  if (isVoid && stored.declaredBy !== null) await updateRow(db, "Device", { uid }, { tagsDeclaredBy: null });
  became({ ...stored, tags: tags.map(({ tag }) => ({ tag, creationKey: keys.get(tag) ?? creationKey })) });
}

/**
 * Returns the tag of a device that was created with an Idempotency-Key. Returns undefined if the tag does not exist. If
 * the tag was deleted, deletes its row, because the key of a deleted object can be reused.
 */
async function tagCreatedWith(db: SqlClient, tenantId: string, creationKey: string) {
  const [use] = await readRows<{ readonly deviceUid: string; readonly tag: string | null }>(
    db,
    sql`SELECT "DeviceTagUse"."deviceUid", "Tag"."name" AS "tag" FROM "DeviceTagUse"
      LEFT JOIN "Tag" ON "Tag"."id" = "DeviceTagUse"."tagId" AND "Tag"."tenantId" = ${tenantId}
      WHERE "DeviceTagUse"."tenantId" = ${tenantId} AND "DeviceTagUse"."creationKey" = ${creationKey}`,
  );
  if (use === undefined || use.tag !== null) return use;
  await deleteRows(db, "DeviceTagUse", { tenantId, creationKey });
  return undefined;
}

/**
 * Adds a tag to a device. Rejects an Idempotency-Key that was used for a different tag, because the empty response
 * cannot show which tag the key created.
 */
export const createDeviceTag: ObjectWrite<PublicOperations["createDeviceTag"], DeviceTags> = async (
  context,
) => {
  const { identity, params, body, creationKey } = context;
  const { tenant: tenantId } = identity;
  await createOnce(context, {
    taken: "tag: the device already has this tag",
    find: async (tx, key) => {
      const existing = await tagCreatedWith(tx, tenantId, key);
      if (existing === undefined) return null;
      if (existing.deviceUid === params.uid && existing.tag === body.tag) return existing;
      throw new ConflictError(
        `this Idempotency-Key already created the tag ${existing.tag} of the device ${existing.deviceUid}; send a new Idempotency-Key`,
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
