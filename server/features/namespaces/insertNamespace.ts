import { randomUUID } from "node:crypto";
import type { Transaction } from "../../db/sql/transaction.ts";
import type { Services } from "../../services.ts";

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

/** Maximum of accepted devices in a new namespace of a cloud instance (rules section 5.3). */
const FREE_CLOUD_DEVICES = 3;

/** Adds a namespace with its owner as its first member. The name must be in lower case. */
export async function insertNamespace(services: Services, tx: Transaction, namespace: NewNamespace) {
  const { tenantId = randomUUID(), ...columns } = namespace;
  const createdAt = services.now();
  return tx.namespace.create({
    data: {
      tenantId,
      ...columns,
      maxDevices: services.settings.edition === "cloud" ? FREE_CLOUD_DEVICES : -1,
      createdAt,
      members: { create: { userId: namespace.ownerId, role: "owner", addedAt: createdAt } },
    },
    include: { members: true },
  });
}

/** The row that {@link insertNamespace} returns. */
export type NewNamespaceRow = Awaited<ReturnType<typeof insertNamespace>>;
