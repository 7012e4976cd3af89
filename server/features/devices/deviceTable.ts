import { sql } from "../../db/sql/sql.ts";
import { column, type IndexLookup, largeText, listOf, type Table } from "../../lists/table.ts";
import type { Services } from "../../services.ts";
import { nameIndexLookup } from "./nameIndexLookup.ts";
import { onlineSince } from "./online.ts";
import { presentDevice } from "./presentDevice.ts";

const text = (name: string) => column("text", "Device", name);

const name = text("name");
const tags = listOf(sql`"DeviceTag"`, sql`"DeviceTag"."deviceUid" = "Device"."uid"`, sql`"DeviceTag"."tag"`);

const stored: Table["fields"] = {
  ...presentDevice.listed("Device"),
  "identity.mac": text("mac"),
  "info.id": text("infoId"),
  "info.pretty_name": text("infoPrettyName"),
  "info.version": text("infoVersion"),
  "info.arch": text("infoArch"),
  "info.platform": text("infoPlatform"),
  public_key: largeText("Device", "publicKey"),
  namespace: {
    type: "text",
    cost: "query",
    value: sql`(SELECT "Namespace"."name" FROM "Namespace" WHERE "Namespace"."tenantId" = "Device"."tenantId")`,
  },
  status_update_at: column("date", "Device", "statusUpdatedAt"),
  "position.latitude": column("number", "Device", "latitude"),
  "position.longitude": column("number", "Device", "longitude"),
};

/** Returns an index lookup that finds the devices with a tag in a namespace. */
const taggedWith = (tenantId: string, tag: string): IndexLookup => ({
  candidates: sql`SELECT "DeviceTag"."deviceUid" AS candidate FROM "DeviceTag"
    WHERE "DeviceTag"."tenantId" = ${tenantId} AND "DeviceTag"."tag" = ${tag}`,
  column: sql`"Device"."uid"`,
});

/**
 * Returns the table for lists of a namespace's devices. The field `online` is computed for each request, because it
 * depends on the time.
 */
export function deviceTable(services: Services, tenantId: string): Table {
  const online = sql`("Device"."lastSeen" > ${onlineSince(services)} AND "Device"."offline" = ${false})`;
  return {
    from: sql`"Device"`,
    id: sql`"Device"."uid"`,
    fields: {
      ...stored,
      name: { ...name, lookup: (part) => nameIndexLookup(services, tenantId, part) },
      tags: { ...tags, lookup: (tag) => taggedWith(tenantId, tag) },
      online: { type: "boolean", value: online, cost: "column" },
    },
  };
}
