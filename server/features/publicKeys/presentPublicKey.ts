import type { publicKeys } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { revisionOf } from "../../changes/managedObject.ts";
import type { PublicKey } from "../../db/generated/sqlite/client.ts";
import { presentFilter, type StoredFilter } from "../filters/filter.ts";
import { wireDate } from "../wireDate.ts";
import { declaredPublicKey } from "./object.ts";

/** A public key as the wire has it (models section 5). */
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
  };
}
