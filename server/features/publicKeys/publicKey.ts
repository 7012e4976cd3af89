import { type publicKeys, refusedKeyType } from "@gatehouse-access/sdk/contract";
import { type KeyCredential, type KeyLapse, keyLapse } from "@gatehouse-access/sdk/policy";
import type { z } from "zod";
import { type Declared, declaredIn, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import type { PublicKey } from "../../db/generated/sqlite/client.ts";
import { findRow, updateRow } from "../../db/sql/rows.ts";
import { type ShownRow, type SqlClient, sql } from "../../db/sql/sql.ts";
import { type MembershipState, policyMember } from "../../http/access/membership.ts";
import { column, largeText, listOf, type Table } from "../../lists/table.ts";
import { presentEnd } from "../accessEnd.ts";
import { declaredFilter, presentFilter, type StoredFilter } from "../filters/filter.ts";
import { type FilteredRow, filteredRows } from "../filters/filteredRows.ts";
import { wireDate } from "../wireDate.ts";

/** Returns the declared fields of a public key. They do not contain the key data, which never changes. */
export const declaredPublicKey = (
  row: ShownRow<Pick<PublicKey, "name" | "username" | "expiresAt" | "ownerId"> & StoredFilter>,
): Declared => ({
  name: row.name,
  username: row.username,
  filter: declaredFilter(row),
  // Both are absent if the key does not have them, so that the key has the same wire format and revision as in version
  // 0.19.
  expires_at: presentEnd(row.expiresAt),
  owner: row.ownerId ?? undefined,
});

/** A public key with the tags of its filter. */
export type FoundKey = FilteredRow<"PublicKey">;

/** A public key with the membership of its owner; null without an owner, and if the owner is not a member. */
export type OwnedKey = FoundKey & { readonly owner: MembershipState | null };

/** Returns a namespace's key with the membership of its owner; null if the namespace has no such key. */
export async function findOwnedKey(
  db: SqlClient,
  key: Pick<PublicKey, "tenantId" | "fingerprint">,
): Promise<OwnedKey | null> {
  const found = await publicKeyRows.find(db, key);
  if (found === null) return null;
  const { tenantId, ownerId: userId } = found;
  return { ...found, owner: userId === null ? null : await findRow(db, "Member", { tenantId, userId }) };
}

/** Returns a key as the policy evaluates it. @param row null if the namespace does not have the key */
export const credentialOf = (row: OwnedKey | null): KeyCredential => ({
  key: row === null ? undefined : policyKey(row),
  owner: row?.owner ? policyMember(row.owner) : undefined,
});

const policyKey = (row: OwnedKey) => ({
  username: row.username,
  filter: presentFilter(row),
  refusedType: refusedKeyType(Buffer.from(row.data, "base64").toString("utf8")),
  expiresAt: row.expiresAt?.toISOString(),
  owner: row.ownerId ?? undefined,
});

/** Returns the reason why a key admits no login at a time; undefined if it may admit logins. */
export function lapseOf(row: OwnedKey, at: Date): KeyLapse | undefined {
  const { key, owner } = credentialOf(row);
  return key && keyLapse(key, owner, at);
}

/** Reads stored public keys and changes the tags of their filters. */
export const publicKeyRows = filteredRows("PublicKey", { tenantId: "tenantId", fingerprint: "fingerprint" });

export const publicKeyObject: ManagedObject<FoundKey> = {
  id: (_, { params, result }) => params.fingerprint ?? String(result?.fingerprint),
  find: (tx, tenantId, fingerprint) => publicKeyRows.find(tx, { tenantId, fingerprint }),
  declared: declaredPublicKey,
  declare: (tx, tenantId, fingerprint, declaredBy) =>
    updateRow(tx, "PublicKey", { tenantId, fingerprint }, { declaredBy }),
};

/**
 * Converts a public key to its wire format (models section 5).
 * @param formerOwner address of an owner who is not a member of the namespace, for administrators
 */
export function presentPublicKey(
  row: ShownRow<FoundKey>,
  formerOwner: string | null = null,
): z.output<typeof publicKeys.publicKey> {
  return {
    data: row.data,
    fingerprint: row.fingerprint,
    created_at: wireDate(row.createdAt),
    tenant_id: row.tenantId,
    name: row.name,
    username: row.username,
    filter: presentFilter(row),
    expires_at: presentEnd(row.expiresAt),
    owner: row.ownerId ?? undefined,
    owner_email: formerOwner ?? undefined,
    revision: revisionOf(declaredPublicKey(row)),
    declared_by: declaredIn(row.declaredBy),
  };
}

const text = (name: string) => column("text", "PublicKey", name);

/** The database table of public keys, and the fields by which clients can filter and sort the list of public keys. */
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
    expires_at: column("date", "PublicKey", "expiresAt"),
    owner: text("ownerId"),
    "filter.hostname": text("hostname"),
    "filter.tags": listOf(sql`"PublicKeyTag"`, publicKeyRows.owner, sql`"PublicKeyTag"."tag"`),
  },
};
