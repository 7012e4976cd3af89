import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { PublicKey } from "../../db/generated/sqlite/client.ts";
import { declaredFilter, type StoredFilter } from "../filters/filter.ts";
import { withTags } from "../tags/tagList.ts";

/** What is declared of a key, beside the key itself, which never changes. */
export const declaredPublicKey = (row: Pick<PublicKey, "name" | "username"> & StoredFilter): Declared => ({
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
};
