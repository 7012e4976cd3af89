import type { apiKeys } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { type Declared, declaredIn, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { ApiKey } from "../../db/generated/sqlite/client.ts";
import { findRow, updateRow } from "../../db/sql/rows.ts";
import { wireDate } from "../wireDate.ts";

/** The declared fields of an API key. */
export const declaredApiKey = (row: Pick<ApiKey, "name" | "role" | "expiresIn">): Declared => ({
  name: row.name,
  role: row.role,
  expires_in: Number(row.expiresIn),
});

export const apiKeyObject: ManagedObject<ApiKey> = {
  // The name identifies a key. After a rename, the new name identifies the key.
  id: (_, { params, body, result, done }) => String((done && body.name) || params.key || result?.name),
  find: (tx, tenantId, name) => findRow(tx, "ApiKey", { tenantId, name }),
  declared: declaredApiKey,
  declare: (tx, tenantId, name, declaredBy) => updateRow(tx, "ApiKey", { tenantId, name }, { declaredBy }),
};

type WireApiKey = z.output<typeof apiKeys.apiKey>;

/**
 * Converts an API key to its wire format. The secret is not stored, so the result does not contain it (models section
 * 6).
 */
export function presentApiKey(row: ApiKey): WireApiKey {
  return {
    tenant_id: row.tenantId,
    created_by: row.createdBy,
    role: row.role as WireApiKey["role"],
    name: row.name,
    expires_in: Number(row.expiresIn),
    created_at: wireDate(row.createdAt),
    updated_at: wireDate(row.updatedAt),
    revision: revisionOf(declaredApiKey(row)),
    declared_by: declaredIn(row.declaredBy),
  };
}
