import type { apiKeys } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { revisionOf } from "../../changes/managedObject.ts";
import type { ApiKey } from "../../db/generated/sqlite/client.ts";
import { wireDate } from "../wireDate.ts";
import { declaredApiKey } from "./object.ts";

type WireApiKey = z.output<typeof apiKeys.apiKey>;

/** An API key as the wire has it, without its secret, which is not stored (models section 6). */
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
  };
}
