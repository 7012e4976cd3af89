import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { Member, Namespace } from "../../db/generated/sqlite/client.ts";
import { findRow, updateRow } from "../../db/rows.ts";

/** The declared fields of a namespace; its members are objects of their own. */
export const declaredNamespace = (
  row: Pick<Namespace, "name" | "sessionRecord" | "connectionAnnouncement">,
): Declared => ({
  name: row.name,
  settings: { session_record: row.sessionRecord, connection_announcement: row.connectionAnnouncement },
});

/** The declared fields of a membership. */
export const declaredMember = (row: Pick<Member, "role">): Declared => ({ role: row.role });

export const namespaceObject: ManagedObject = {
  id: (_, { tenantId, result }) => String(result?.tenant_id ?? tenantId),
  async read(tx, _, tenantId) {
    const row = await findRow(tx, "Namespace", { tenantId });
    return row ? declaredNamespace(row) : null;
  },
  declare: (tx, _, tenantId, declaredBy) => updateRow(tx, "Namespace", { tenantId }, { declaredBy }),
};

export const memberObject: ManagedObject = {
  async id(tx, { params, body, caller }) {
    if (params.uid) return params.uid;
    if (typeof body.email !== "string") return caller.kind === "user" ? caller.userId : "";
    return (await findRow(tx, "User", { email: body.email.toLowerCase() }))?.id ?? "";
  },
  async read(tx, tenantId, userId) {
    const row = await findRow(tx, "Member", { tenantId, userId });
    return row ? declaredMember(row) : null;
  },
  declare: (tx, tenantId, userId, declaredBy) =>
    updateRow(tx, "Member", { tenantId, userId }, { declaredBy }),
};
