import { devices } from "@gatehouse-access/sdk/contract";
import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { Device, DeviceTag } from "../../db/generated/sqlite/client.ts";
import { findRow, updateRow } from "../../db/sql/rows.ts";
import { readRows, type SqlClient, sql } from "../../db/sql/sql.ts";
import { presenter } from "../fields.ts";
import { tagNames } from "../tags/tagList.ts";

const declared = devices.device.pick({ name: true, status: true, public_url: true });

/** Returns the declared fields of a device. They do not include the fields that the agent reports. */
export const declaredDevice = presenter<Pick<Device, "name" | "status" | "publicUrl">, typeof declared>(
  declared,
  {},
);

/** Returns the declared tags of a device. They are sorted, because their order has no effect. */
export const declaredTags = (rows: readonly { readonly tag: string }[]): Declared => ({
  tags: tagNames(rows).sort(),
});

export const deviceObject: ManagedObject<Device> = {
  missing: "no such device",
  id: (_, { params }) => params.uid ?? "",
  find: (tx, tenantId, uid) => findRow(tx, "Device", { uid, tenantId }),
  declared: (row) => (row.status === "removed" ? null : declaredDevice(row)),
  declare: (tx, tenantId, uid, declaredBy) => updateRow(tx, "Device", { uid, tenantId }, { declaredBy }),
};

/** The tags of a device, in the order in which the caller set them, and the program resource that declared them. */
export interface DeviceTags {
  readonly declaredBy: string | null;
  /** True if the device has tag rows. The rows may belong to deleted tags. */
  readonly hasRows: boolean;
  readonly tags: readonly Pick<DeviceTag, "tag" | "creationKey">[];
}

/** Returns the tags of a device. Returns null if the device is not in the namespace. */
async function findDeviceTags(db: SqlClient, tenantId: string, uid: string): Promise<DeviceTags | null> {
  const rows = await readRows<{
    readonly declaredBy: string | null;
    readonly tagId: string | null;
    readonly tag: string | null;
    readonly creationKey: string | null;
  }>(
    db,
    sql`SELECT "Device"."tagsDeclaredBy" AS "declaredBy", "DeviceTagUse"."tagId", "Tag"."name" AS "tag",
        "DeviceTagUse"."creationKey"
      FROM "Device" LEFT JOIN "DeviceTagUse" ON "DeviceTagUse"."deviceUid" = "Device"."uid"
      LEFT JOIN "Tag" ON "Tag"."id" = "DeviceTagUse"."tagId" AND "Tag"."tenantId" = ${tenantId}
      WHERE "Device"."uid" = ${uid} AND "Device"."tenantId" = ${tenantId} ORDER BY "DeviceTagUse"."position"`,
  );
  const [first] = rows;
  if (first === undefined) return null;
  const tags = rows.flatMap(({ tag, creationKey }) => (tag === null ? [] : { tag, creationKey }));
  return { declaredBy: first.declaredBy, hasRows: first.tagId !== null, tags };
}

export const deviceTagsObject: ManagedObject<DeviceTags> = {
  missing: deviceObject.missing,
  id: (_, { params }) => params.uid ?? "",
  find: findDeviceTags,
  declared: ({ tags }) => declaredTags(tags),
  declare: (tx, tenantId, uid, tagsDeclaredBy) =>
    updateRow(tx, "Device", { uid, tenantId }, { tagsDeclaredBy }),
};
