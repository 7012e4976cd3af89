import type { namespaces } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { Member, Namespace, Prisma } from "../../db/generated/sqlite/client.ts";
import type { Services } from "../../services.ts";
import { revisionOf } from "../objects/managedObject.ts";
import { wireDate } from "../wireDate.ts";
import { declaredMember, declaredNamespace } from "./objects.ts";

type WireNamespace = z.output<typeof namespaces.namespace>;
type WireMember = z.output<typeof namespaces.member>;

/** What a namespace's answer needs to be read with. */
export const withMembers = {
  members: {
    include: { user: { select: { email: true } } },
    orderBy: [{ addedAt: "asc" }, { userId: "asc" }],
  },
} satisfies Prisma.NamespaceInclude;

interface NamespaceRow extends Namespace {
  readonly members: readonly (Member & { readonly user?: { readonly email: string } })[];
}

/** A namespace as the wire has it (models section 4). */
export function presentNamespace(row: NamespaceRow, acceptedDevices: number): WireNamespace {
  const type = row.type as WireNamespace["type"];
  return {
    name: row.name,
    owner: row.ownerId,
    tenant_id: row.tenantId,
    members: row.members.map((member) => ({
      id: member.userId,
      added_at: wireDate(member.addedAt),
      expires_at: wireDate(member.expiresAt),
      role: member.role as WireMember["role"],
      type,
      status: member.status as WireMember["status"],
      // Left out of the answer to a creation (models section 4).
      email: member.user?.email ?? "",
      revision: revisionOf(declaredMember(member)),
    })),
    settings: { session_record: row.sessionRecord, connection_announcement: row.connectionAnnouncement },
    max_devices: row.maxDevices,
    device_count: acceptedDevices,
    devices_count: acceptedDevices,
    created_at: wireDate(row.createdAt),
    billing: null,
    type,
    revision: revisionOf(declaredNamespace(row)),
  };
}

/** Namespaces with their members and counts, in the order of the ids; unknown ids are left out. */
export async function presentNamespaces(
  services: Services,
  tenantIds: readonly string[],
): Promise<WireNamespace[]> {
  const where = { tenantId: { in: [...tenantIds] } };
  const [rows, counts] = await Promise.all([
    services.db.namespace.findMany({ where, include: withMembers }),
    services.db.device.groupBy({ by: ["tenantId"], where: { ...where, status: "accepted" }, _count: true }),
  ]);
  const byId = new Map(rows.map((row) => [row.tenantId, row]));
  const countOf = new Map(counts.map((count) => [count.tenantId, count._count]));
  return tenantIds.flatMap((id) => {
    const row = byId.get(id);
    return row ? [presentNamespace(row, countOf.get(id) ?? 0)] : [];
  });
}
