import { sql } from "../../db/sql/sql.ts";
import { column, countOf, largeText, listOf, type Table } from "../../lists/table.ts";
import { deviceCount } from "../devices/deviceCounts.ts";
import { presentSettings } from "./objects.ts";
import { presentNamespace } from "./presentNamespace.ts";

const acceptedDevices = countOf(deviceCount(sql`"Namespace"."tenantId"`, { status: "accepted" }));

const memberField = (name: string) =>
  listOf(sql`"Member"`, sql`"Member"."tenantId" = "Namespace"."tenantId"`, sql`"Member".${sql.column(name)}`);

const settings = Object.fromEntries(
  Object.entries(presentSettings.listed("Namespace")).map(([name, field]) => [`settings.${name}`, field]),
);

/** The table for lists of namespaces, and the fields by which clients can filter and sort these lists. */
export const namespaceTable: Table = {
  from: sql`"Namespace"`,
  id: sql`"Namespace"."tenantId"`,
  fields: {
    ...presentNamespace.listed("Namespace"),
    owner: column("text", "Namespace", "ownerId"),
    device_count: acceptedDevices,
    devices_count: acceptedDevices,
    ...settings,
    "settings.connection_announcement": largeText("Namespace", "connectionAnnouncement"),
    "members.id": memberField("userId"),
    "members.role": memberField("role"),
    "members.status": memberField("status"),
  },
};
