import type { namespaces } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { Member, Namespace } from "../../db/generated/sqlite/client.ts";
import { findRow, updateRow } from "../../db/sql/rows.ts";
import type { ShownRow } from "../../db/sql/sql.ts";
import { presentEnd } from "../accessEnd.ts";

type SettingsRow = Pick<
  Namespace,
  | "sessionRecord"
  | "connectionAnnouncement"
  | "deviceProof"
  | "sessionMaxMinutes"
  | "sessionIdleMinutes"
  | "sessionRecordMode"
  | "sessionRecordMegabytes"
  | "sessionRecordFailure"
  | "sshForwarding"
>;

type Settings = z.input<typeof namespaces.namespace>["settings"];

/** Returns the forwarding rules of a namespace. */
export const forwardingOf = (
  row: Pick<Namespace, "sshForwarding">,
): NonNullable<Settings["ssh_forwarding"]> => JSON.parse(row.sshForwarding);

/**
 * Returns the settings of a namespace in wire format. A setting that servers of version 0.19 do not have is present
 * only if it differs from its default. A namespace with default settings therefore has the same wire format and
 * revision as in version 0.19.
 */
export const wireSettings = (row: SettingsRow): Settings => ({
  session_record: row.sessionRecord,
  connection_announcement: row.connectionAnnouncement,
  device_proof: row.deviceProof === "required" ? "required" : undefined,
  session_max_minutes: row.sessionMaxMinutes > 0 ? Number(row.sessionMaxMinutes) : undefined,
  session_idle_minutes: row.sessionIdleMinutes > 0 ? Number(row.sessionIdleMinutes) : undefined,
  session_record_mode:
    row.sessionRecordMode === "default"
      ? undefined
      : (row.sessionRecordMode as Settings["session_record_mode"]),
  session_record_megabytes: row.sessionRecordMegabytes > 0 ? Number(row.sessionRecordMegabytes) : undefined,
  session_record_failure: row.sessionRecordFailure === "end" ? "end" : undefined,
  ssh_forwarding: row.sshForwarding === "[]" ? undefined : forwardingOf(row),
});

/** Returns the declared fields of a namespace, without members, which are separate objects. */
export const declaredNamespace = (row: Pick<Namespace, "name"> & SettingsRow): Declared => ({
  name: row.name,
  settings: wireSettings(row),
});

/** Returns the declared fields of a membership. */
export const declaredMember = (row: ShownRow<Pick<Member, "role" | "accessExpiresAt">>): Declared => ({
  role: row.role,
  access_expires_at: presentEnd(row.accessExpiresAt),
});

export const namespaceObject: ManagedObject<Namespace> = {
  id: (_, { tenantId, result }) => String(result?.tenant_id ?? tenantId),
  find: (tx, _, tenantId) => findRow(tx, "Namespace", { tenantId }),
  declared: declaredNamespace,
  declare: (tx, _, tenantId, declaredBy) => updateRow(tx, "Namespace", { tenantId }, { declaredBy }),
};

export const memberObject: ManagedObject<Member> = {
  async id(tx, { params, body, caller }) {
    if (params.uid) return params.uid;
    if (typeof body.email !== "string") return caller.kind === "user" ? caller.userId : "";
    return (await findRow(tx, "User", { email: body.email.toLowerCase() }))?.id ?? "";
  },
  find: (tx, tenantId, userId) => findRow(tx, "Member", { tenantId, userId }),
  declared: declaredMember,
  declare: (tx, tenantId, userId, declaredBy) =>
    updateRow(tx, "Member", { tenantId, userId }, { declaredBy }),
};
