import { sql } from "../../db/sql/sql.ts";
import { column, countOf, largeText, listOf, type Table } from "../../lists/table.ts";
import { deviceCount } from "../devices/deviceCounts.ts";

const acceptedDevices = countOf(deviceCount(sql`"Namespace"."tenantId"`, { status: "accepted" }));

const memberField = (name: string) =>
  listOf(sql`"Member"`, sql`"Member"."tenantId" = "Namespace"."tenantId"`, sql`"Member".${sql.column(name)}`);

/** The database table of namespaces, and the fields by which clients can filter and sort the list of namespaces. */
export const namespaceTable: Table = {
  from: sql`"Namespace"`,
  id: sql`"Namespace"."tenantId"`,
  fields: {
    name: column("text", "Namespace", "name"),
    owner: column("text", "Namespace", "ownerId"),
    tenant_id: column("text", "Namespace", "tenantId"),
    type: column("text", "Namespace", "type"),
    max_devices: column("number", "Namespace", "maxDevices"),
    device_count: acceptedDevices,
    devices_count: acceptedDevices,
    created_at: column("date", "Namespace", "createdAt"),
    "settings.session_record": column("boolean", "Namespace", "sessionRecord"),
    "settings.connection_announcement": largeText("Namespace", "connectionAnnouncement"),
    "settings.device_proof": column("text", "Namespace", "deviceProof"),
    "settings.session_max_minutes": column("number", "Namespace", "sessionMaxMinutes"),
    "settings.session_idle_minutes": column("number", "Namespace", "sessionIdleMinutes"),
    "settings.session_record_mode": column("text", "Namespace", "sessionRecordMode"),
    "settings.session_record_megabytes": column("number", "Namespace", "sessionRecordMegabytes"),
    "settings.session_record_failure": column("text", "Namespace", "sessionRecordFailure"),
    "members.id": memberField("userId"),
    "members.role": memberField("role"),
    "members.status": memberField("status"),
  },
};
