import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { Device } from "../../db/generated/sqlite/client.ts";
import { tagNames, withTags } from "../tags/tagList.ts";

/** The declared fields of a device; its agent's reports are not declared. */
export const declaredDevice = (row: Pick<Device, "name" | "status" | "publicUrl">): Declared => ({
  name: row.name,
  status: row.status,
  public_url: row.publicUrl,
});

/** The declared tags of a device, a set. */
export const declaredTags = (rows: readonly { readonly tag: string }[]): Declared => ({
  tags: tagNames(rows).sort(),
});

export const deviceObject: ManagedObject = {
  id: (_, { params }) => params.uid ?? "",
  async read(tx, tenantId, uid) {
    const row = await tx.device.findUnique({ where: { uid, tenantId } });
    return row && row.status !== "removed" ? declaredDevice(row) : null;
  },
  declare: (tx, tenantId, uid, declaredBy) =>
    tx.device.updateMany({ where: { uid, tenantId }, data: { declaredBy } }),
};

export const deviceTagsObject: ManagedObject = {
  id: (_, { params }) => params.uid ?? "",
  async read(tx, tenantId, uid) {
    const row = await tx.device.findUnique({ where: { uid, tenantId }, select: withTags });
    return row && declaredTags(row.tags);
  },
  declare: (tx, tenantId, uid, tagsDeclaredBy) =>
    tx.device.updateMany({ where: { uid, tenantId }, data: { tagsDeclaredBy } }),
};
