import type { publicKeys } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import type { PublicKey, PublicKeyTag } from "../../db/generated/sqlite/client.ts";
import { wireDate } from "../wireDate.ts";

/** What a key's answer needs to be read with. */
export const withTags = { tags: { orderBy: { position: "asc" } } } as const;

/** A public key as the wire has it (models section 5): of the filter, the variant in use. */
export function presentPublicKey(
  row: PublicKey & { readonly tags: readonly PublicKeyTag[] },
): z.output<typeof publicKeys.publicKey> {
  return {
    data: row.data,
    fingerprint: row.fingerprint,
    created_at: wireDate(row.createdAt),
    tenant_id: row.tenantId,
    name: row.name,
    username: row.username,
    filter: row.hostname === null ? { tags: row.tags.map((tag) => tag.tag) } : { hostname: row.hostname },
  };
}
