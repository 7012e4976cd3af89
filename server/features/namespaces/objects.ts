import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { Member, Namespace } from "../../db/generated/sqlite/client.ts";

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
    const row = await tx.namespace.findUnique({ where: { tenantId } });
    return row && declaredNamespace(row);
  },
  declare: (tx, _, tenantId, declaredBy) =>
    tx.namespace.updateMany({ where: { tenantId }, data: { declaredBy } }),
};

export const memberObject: ManagedObject = {
  async id(tx, { params, body, caller }) {
    if (params.uid) return params.uid;
    if (typeof body.email !== "string") return caller.kind === "user" ? caller.userId : "";
    const email = body.email.toLowerCase();
    return (await tx.user.findUnique({ where: { email }, select: { id: true } }))?.id ?? "";
  },
  async read(tx, tenantId, userId) {
    const row = await tx.member.findUnique({ where: { tenantId_userId: { tenantId, userId } } });
    return row && declaredMember(row);
  },
  declare: (tx, tenantId, userId, declaredBy) =>
    tx.member.updateMany({ where: { tenantId, userId }, data: { declaredBy } }),
};
