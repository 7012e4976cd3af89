import type { publicKeys } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { declaredIn } from "../../changes/declaredBy.ts";
import { type Declared, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { PublicKey } from "../../db/generated/sqlite/client.ts";
import { sql } from "../../db/sql.ts";
import { column, largeText, listOf, type Table } from "../../lists/table.ts";
import { declaredFilter, presentFilter, type StoredFilter } from "../filters/filter.ts";
import { withTags } from "../tags/tagList.ts";
import { wireDate } from "../wireDate.ts";

/** The declared fields of a key; the key itself never changes. */
const declaredPublicKey = (row: Pick<PublicKey, "name" | "username"> & StoredFilter): Declared => ({
  name: row.name,
  username: row.username,
  filter: declaredFilter(row),
});

export const publicKeyObject: ManagedObject = {
  id: (_, { params, result }) => params.fingerprint ?? String(result?.fingerprint),
  async read(tx, tenantId, fingerprint) {
    const where = { tenantId_fingerprint: { tenantId, fingerprint } };
    const row = await tx.publicKey.findUnique({ where, include: withTags });
    return row && declaredPublicKey(row);
  },
  declare: (tx, tenantId, fingerprint, declaredBy) =>
    tx.publicKey.updateMany({ where: { tenantId, fingerprint }, data: { declaredBy } }),
};

/** Converts a public key to its wire format (models section 5). */
export function presentPublicKey(row: PublicKey & StoredFilter): z.output<typeof publicKeys.publicKey> {
  return {
    data: row.data,
    fingerprint: row.fingerprint,
    created_at: wireDate(row.createdAt),
    tenant_id: row.tenantId,
    name: row.name,
    username: row.username,
    filter: presentFilter(row),
    revision: revisionOf(declaredPublicKey(row)),
    declared_by: declaredIn(row.declaredBy),
  };
}

const text = (name: string) => column("text", "PublicKey", name);

/** The table of public keys for lists. */
export const publicKeyTable: Table = {
  from: sql`"PublicKey"`,
  id: sql`"PublicKey"."fingerprint"`,
  fields: {
    data: largeText("PublicKey", "data"),
    fingerprint: text("fingerprint"),
    created_at: column("date", "PublicKey", "createdAt"),
    tenant_id: text("tenantId"),
    name: text("name"),
    username: text("username"),
    "filter.hostname": text("hostname"),
    "filter.tags": listOf(
      sql`"PublicKeyTag"`,
      sql`"PublicKeyTag"."tenantId" = "PublicKey"."tenantId"
        AND "PublicKeyTag"."fingerprint" = "PublicKey"."fingerprint"`,
      sql`"PublicKeyTag"."tag"`,
    ),
  },
};
