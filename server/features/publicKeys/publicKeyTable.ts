import { sql } from "../../db/sql.ts";
import { column, largeText, listOf, type Table } from "../../lists/table.ts";

const text = (name: string) => column("text", "PublicKey", name);

/** Public keys of one namespace, for lists. */
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
