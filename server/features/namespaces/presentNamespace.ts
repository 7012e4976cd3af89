import type { namespaces } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { declaredIn, revisionOf } from "../../changes/managedObject.ts";
import type { Billing, Member, Namespace } from "../../db/generated/sqlite/client.ts";
import { readRows, type Sql, sql } from "../../db/sql/sql.ts";
import type { SqlServices } from "../../services.ts";
import { presentEnd } from "../accessEnd.ts";
import { presentBilling } from "../billing/record.ts";
import { deviceCount } from "../devices/deviceCounts.ts";
import { wireDate } from "../wireDate.ts";
import { declaredMember, declaredNamespace, wireSettings } from "./objects.ts";

type WireNamespace = z.output<typeof namespaces.namespace>;
type WireMember = z.output<typeof namespaces.member>;

interface NamespaceRow extends Namespace {
  readonly members: readonly (Member & { readonly user?: { readonly email: string } })[];
}

/** A row of {@link namespaceColumns}. */
export type CountedNamespace = Namespace & { readonly accepted: number | bigint };

/** The columns of a namespace, and the number of its accepted devices. */
export const namespaceColumns: Sql = sql`"Namespace".*,
  (${deviceCount(sql`"Namespace"."tenantId"`, { status: "accepted" })}) AS accepted`;

/** Converts a namespace to its wire format (models section 4). */
export function presentNamespace(
  row: NamespaceRow,
  acceptedDevices: number,
  billing: Billing | null = null,
): WireNamespace {
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
      // The name of the owner is empty in the response to a create request (models section 4).
      email: member.user?.email ?? "",
      ...presentEnd("access_expires_at", member.accessExpiresAt),
      revision: revisionOf(declaredMember(member)),
      declared_by: declaredIn(member.declaredBy),
    })),
    settings: wireSettings(row),
    max_devices: row.maxDevices,
    device_count: acceptedDevices,
    devices_count: acceptedDevices,
    created_at: wireDate(row.createdAt),
    billing: billing && presentBilling(billing),
    type,
    revision: revisionOf(declaredNamespace(row)),
    declared_by: declaredIn(row.declaredBy),
  };
}

/** Members and billing states of namespaces. */
interface NamespaceDetails {
  readonly members: readonly (Member & { readonly email: string })[];
  readonly billings: readonly Billing[];
}

/** Reads the members and billing states of namespaces. The list of namespaces must not be empty. */
export async function readDetails(
  services: SqlServices,
  tenantIds: readonly string[],
): Promise<NamespaceDetails> {
  const [members, billings] = await Promise.all([
    readRows<Member & { email: string }>(
      services.db,
      sql`SELECT "Member".*, "User"."email" FROM "Member" JOIN "User" ON "User"."id" = "Member"."userId"
        WHERE "Member"."tenantId" IN (${sql.list(tenantIds)}) ORDER BY "Member"."addedAt" ASC, "Member"."userId" ASC`,
    ),
    services.settings.edition === "cloud"
      ? readRows<Billing>(
          services.db,
          sql`SELECT * FROM "Billing" WHERE "tenantId" IN (${sql.list(tenantIds)})`,
        )
      : [],
  ]);
  return { members, billings };
}

/** Converts namespaces with their members and billing states to wire format, in the order of the rows. */
export function presentNamespaces(
  rows: readonly CountedNamespace[],
  { members, billings }: NamespaceDetails,
): WireNamespace[] {
  const billingOf = new Map(billings.map((billing) => [billing.tenantId, billing]));
  const membersOf = Map.groupBy(members, (member) => member.tenantId);
  return rows.map((row) => {
    const own = membersOf.get(row.tenantId) ?? [];
    const withEmail = own.map(({ email, ...member }) => ({ ...member, user: { email } }));
    return presentNamespace(
      { ...row, members: withEmail },
      Number(row.accepted),
      billingOf.get(row.tenantId),
    );
  });
}
