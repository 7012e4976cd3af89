import type { Device, DeviceTag } from "../../db/generated/sqlite/client.ts";
import { readRows } from "../../db/readRows.ts";
import { sql } from "../../db/sql.ts";
import { inOrder } from "../../lists/listRows.ts";
import type { Services } from "../../services.ts";

interface TaggedDevice extends Device {
  readonly tags: readonly DeviceTag[];
}

/** Devices with their tags, in the order of the uids; devices deleted meanwhile are left out. */
export async function readDevices(services: Services, uids: readonly string[]): Promise<TaggedDevice[]> {
  if (uids.length === 0) return [];
  const listed = sql.list(uids);
  const [devices, tags] = await Promise.all([
    readRows<Device>(services.db, sql`SELECT * FROM "Device" WHERE "uid" IN (${listed})`),
    readRows<DeviceTag>(
      services.db,
      sql`SELECT * FROM "DeviceTag" WHERE "deviceUid" IN (${listed}) ORDER BY "position" ASC`,
    ),
  ]);
  const tagsOf = Map.groupBy(tags, (tag) => tag.deviceUid);
  return inOrder(uids, devices, (device) => device.uid).map((device) => ({
    ...device,
    tags: tagsOf.get(device.uid) ?? [],
  }));
}
