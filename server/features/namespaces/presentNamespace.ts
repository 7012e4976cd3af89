import type { namespaces } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { declaredIn, revisionOf } from "../../changes/managedObject.ts";
import type { Billing, Member, Namespace } from "../../db/generated/sqlite/client.ts";
import { readWireRows, type ShownRow, type Sql, sql, type WireRow } from "../../db/sql/sql.ts";
import type { SqlServices } from "../../services.ts";
import { presentEnd } from "../accessEnd.ts";
import { presentBilling } from "../billing/record.ts";
import { deviceCount } from "../devices/deviceCounts.ts";
import { wireDate } from "../wireDate.ts";
import { declaredMember, declaredNamespace, wireSettings } from "./objects.ts";

type WireNamespace = z.output<typeof namespaces.namespace>;
type WireMember = z.output<typeof namespaces.member>;

/** A membership. The owner of a new namespace has no e-mail address here, because the service has not read the user. */
type MemberRow = ShownRow<Member> & { readonly email?: string };

/** A row of {@link namespaceColumns}. */
export type CountedNamespace = WireRow<Namespace> & { readonly accepted: number | bigint };

/** The columns of a namespace, and the number of its accepted devices. */
export const namespaceColumns: Sql = sql`"Namespace".*,
  (${deviceCount(sql`"Namespace"."tenantId"`, { status: "accepted" })}) AS accepted`;

/** Converts a namespace to its wire format (models section 4). */
export function presentNamespace(
  row: ShownRow<Namespace>,
  members: readonly MemberRow[],
  acceptedDevices: number,
  billing: ShownRow<Billing> | null = null,
): WireNamespace {
  const type = row.type as WireNamespace["type"];
  return {
    name: row.name,
    owner: row.ownerId,
    tenant_id: row.tenantId,
    members: members.map((member) => ({
      id: member.userId,
      added_at: wireDate(member.addedAt),
      expires_at: wireDate(member.expiresAt),
      role: member.role as WireMember["role"],
      type,
      status: member.status as WireMember["status"],
      // The name of the owner is empty in the response to a create request (models section 4).
      email: member.email ?? "",
      access_expires_at: presentEnd(member.accessExpiresAt),
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
  readonly members: readonly MemberRow[];
  readonly billings: readonly WireRow<Billing>[];
}

/** Reads the members and billing states of namespaces. The list of namespaces must not be empty. */
export async function readDetails(
  services: SqlServices,
  tenantIds: readonly string[],
): Promise<NamespaceDetails> {
  const [members, billings] = await Promise.all([
    readWireRows<MemberRow>(
      services.db,
      sql`SELECT "Member".*, "User"."email" FROM "Member" JOIN "User" ON "User"."id" = "Member"."userId"
        WHERE "Member"."tenantId" IN (${sql.list(tenantIds)}) ORDER BY "Member"."addedAt" ASC, "Member"."userId" ASC`,
    ),
    services.settings.edition === "cloud"
      ? readWireRows<WireRow<Billing>>(
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
  return rows.map((row) =>
    presentNamespace(
      row,
      membersOf.get(row.tenantId) ?? [],
      Number(row.accepted),
      billingOf.get(row.tenantId),
    ),
  );
}
