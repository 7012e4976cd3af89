import { randomUUID } from "node:crypto";
import type { Member, Namespace } from "../../db/generated/sqlite/client.ts";
import { insertion, insertRows } from "../../db/sql/rows.ts";
import { readRows, sql } from "../../db/sql/sql.ts";
import type { SqlServices } from "../../services.ts";

/**
 * Initial connection announcement. A community instance sets it for every new namespace. The other editions set it only
 * for the first namespace (rules section 5.3).
 */
export const WELCOME =
  "Welcome! You are connected through Gatehouse. An administrator of the namespace can change this text.";

interface NewNamespace {
  readonly name: string;
  readonly ownerId: string;
  readonly tenantId?: string;
  readonly type: "personal" | "team";
  readonly sessionRecord: boolean;
  readonly connectionAnnouncement: string;
  readonly creationKey?: string | null;
  readonly declaredBy?: string | null;
}

/** Maximum number of accepted devices in a new namespace on a cloud instance (rules section 5.3). */
const FREE_CLOUD_DEVICES = 3;

/**
 * Adds a namespace, with its owner as the first member. The name must be in lower case. Call this function in a
 * transaction.
 * @returns null if the name or the tenant id is already used
 */
export async function insertNamespace({ db, now, settings }: SqlServices, namespace: NewNamespace) {
  const { tenantId = randomUUID(), ...columns } = namespace;
  const createdAt = now();
  const maxDevices = settings.edition === "cloud" ? FREE_CLOUD_DEVICES : -1;
  const [row] = await readRows<Namespace>(
    db,
    sql`${insertion("Namespace", [{ tenantId, ...columns, maxDevices, createdAt }])} RETURNING *`,
  );
  if (row === undefined) return null;
  const owner: Member = {
    tenantId,
    userId: namespace.ownerId,
    role: "owner",
    status: "accepted",
    addedAt: createdAt,
    expiresAt: null,
    accessExpiresAt: null,
    invitation: null,
    invitationMailed: false,
    creationKey: null,
    declaredBy: null,
  };
  await insertRows(db, "Member", [owner]);
  return { ...row, members: [owner] };
}
