import { namespaces } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { revisionOf } from "../../changes/managedObject.ts";
import type { Billing, Member, Namespace } from "../../db/generated/sqlite/client.ts";
import { readWireRows, type ShownRow, type Sql, sql, type WireRow } from "../../db/sql/sql.ts";
import type { SqlServices } from "../../services.ts";
import { presentBilling } from "../billing/record.ts";
import { deviceCount } from "../devices/deviceCounts.ts";
import { presenter, wireDate } from "../fields.ts";
import { declaredMember, declaredNamespace, wireSettings } from "./objects.ts";

const { member, namespace } = namespaces;

type WireNamespace = z.output<typeof namespace>;

/**
 * A membership. For the owner of a new namespace, the e-mail address is omitted, because the service has not read the
 * user.
 */
type MemberRow = ShownRow<Member> & { readonly email?: string };

/** A row of {@link namespaceColumns}. */
export type CountedNamespace = WireRow<Namespace> & { readonly accepted: number | bigint };

/** The columns of a namespace, and the number of its accepted devices. */
export const namespaceColumns: Sql = sql`"Namespace".*,
  (${deviceCount(sql`"Namespace"."tenantId"`, { status: "accepted" })}) AS accepted`;

const presentMember = presenter<
  Member & Pick<MemberRow, "email">,
  typeof member,
  [type: WireNamespace["type"]]
>(member, {
  id: (row) => row.userId,
  expires_at: (row) => wireDate(row.expiresAt),
  type: (_, type) => type,
  // In the response to a create request, the e-mail address of the owner is empty (models section 4).
  email: (row) => row.email ?? "",
  revision: (row) => revisionOf(declaredMember(row)),
});

/** Converts a namespace to its wire format (models section 4). */
export const presentNamespace = presenter<
  Namespace,
  typeof namespace,
  [members: readonly MemberRow[], acceptedDevices: number, billing?: ShownRow<Billing> | null]
>(namespace, {
  owner: (row) => row.ownerId,
  members: (row, members) =>
    members.map((member) => presentMember(member, row.type as WireNamespace["type"])),
  settings: wireSettings,
  device_count: (_, _members, acceptedDevices) => acceptedDevices,
  devices_count: (_, _members, acceptedDevices) => acceptedDevices,
  billing: (_, _members, _acceptedDevices, billing) => (billing ? presentBilling(billing) : null),
  revision: (row) => revisionOf(declaredNamespace(row)),
});

/** The members and billing states of several namespaces. */
interface NamespaceDetails {
  readonly members: readonly MemberRow[];
  readonly billings: readonly WireRow<Billing>[];
}

/** Reads the members and billing states of namespaces. `tenantIds` must not be empty. */
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
