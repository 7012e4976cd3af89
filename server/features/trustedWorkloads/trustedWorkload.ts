import type { trustedWorkloads } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { type Declared, declaredIn, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { TrustedWorkload } from "../../db/generated/sqlite/client.ts";
import { findRow, updateRow } from "../../db/sql/rows.ts";
import { wireDate } from "../wireDate.ts";

type WireWorkload = z.output<typeof trustedWorkloads.trustedWorkload>;

/** The stored settings of a workload. */
export type WorkloadSettings = Pick<
  TrustedWorkload,
  "name" | "issuer" | "audience" | "claims" | "role" | "maxSessionMinutes" | "singleUse"
>;

/** Returns the required claims of a workload, by name. */
export const claimsOf = ({ claims }: Pick<TrustedWorkload, "claims">): Readonly<Record<string, string>> =>
  JSON.parse(claims);

/** Returns the declared fields of a workload. */
export const declaredWorkload = (row: WorkloadSettings) =>
  ({
    name: row.name,
    issuer: row.issuer,
    audience: row.audience,
    claims: claimsOf(row),
    role: row.role as WireWorkload["role"],
    max_session_minutes: Number(row.maxSessionMinutes),
    // SQLite stores a switch as a number.
    single_use: Boolean(row.singleUse),
  }) satisfies Declared;

export const trustedWorkloadObject: ManagedObject<TrustedWorkload> = {
  id: (_, { params, result }) => params.id ?? String(result?.id),
  find: (tx, tenantId, id) => findRow(tx, "TrustedWorkload", { tenantId, id }),
  declared: declaredWorkload,
  declare: (tx, tenantId, id, declaredBy) =>
    updateRow(tx, "TrustedWorkload", { tenantId, id }, { declaredBy }),
};

/** Converts a workload to its wire format. */
export function presentWorkload(row: TrustedWorkload): WireWorkload {
  return {
    id: row.id,
    tenant_id: row.tenantId,
    ...declaredWorkload(row),
    created_by: row.createdBy,
    created_at: wireDate(row.createdAt),
    updated_at: wireDate(row.updatedAt),
    revision: revisionOf(declaredWorkload(row)),
    declared_by: declaredIn(row.declaredBy),
  };
}
