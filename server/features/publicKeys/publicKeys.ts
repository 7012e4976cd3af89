import {
  LOGIN_KEY_TYPES,
  type PublicOperations,
  parseSshPublicKey,
  publicKeys,
  refusedKeyType,
  roleAtLeast,
  sshPublicKeyLine,
  TOTAL_COUNT,
} from "@gatehouse-access/sdk/contract";
import { type KeyCredential, type KeyLapse, keyLapse } from "@gatehouse-access/sdk/policy";
import { declaredColumn, type ManagedObject, revisionOf } from "../../changes/managedObject.ts";
import { createOnce, deletion } from "../../changes/writeObject.ts";
import type { PublicKey } from "../../db/generated/sqlite/client.ts";
import { findRow, insertRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, type SqlClient, sql } from "../../db/sql/sql.ts";
import { ConflictError, InvalidError, NotFoundError } from "../../errors.ts";
import { type MembershipState, policyMember } from "../../http/access/membership.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import { listColumns } from "../../lists/listRows.ts";
import { column, largeText, listOf, type Table } from "../../lists/table.ts";
import { columnsFrom, declaredSchema, newEnd, presenter, updatedEnd } from "../fields.ts";
import {
  addFilterTag,
  checkFilter,
  declaredFilter,
  type FilteredRow,
  type FilterOwner,
  filterColumn,
  filteredRows,
  presentFilter,
  removeFilterTag,
  replaceFilterTags,
} from "../filters/filter.ts";
import { tagRows } from "../tags/tagList.ts";

const { publicKey } = publicKeys;
const settings = publicKeys.updatePublicKey.body;
const declared = declaredSchema(publicKey, settings);

/** Returns the columns for the settings of a public key, except the filter, the expiry time and the owner. */
const publicKeyColumns = columnsFrom<PublicKey, typeof settings>(settings, {
  filter: true,
  expires_at: true,
  owner: true,
});

/** A public key, with the tags of its filter. */
type FoundKey = FilteredRow<"PublicKey">;

/**
 * A public key, with the membership of its owner. The membership is null if the key has no owner, or if the owner is
 * not a member.
 */
export type OwnedKey = FoundKey & { readonly owner: MembershipState | null };

/** Returns a key of a namespace, with the membership of its owner. Returns null if the key is not in the namespace. */
export async function findOwnedKey(
  db: SqlClient,
  key: Pick<PublicKey, "tenantId" | "fingerprint">,
): Promise<OwnedKey | null> {
  const found = await publicKeyRows.find(db, key);
  if (found === null) return null;
  const { tenantId, ownerId: userId } = found;
  return { ...found, owner: userId === null ? null : await findRow(db, "Member", { tenantId, userId }) };
}

/**
 * Converts a key and the membership of its owner to the format that the policy evaluates.
 * @param row null if the key is not in the namespace
 */
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

/**
 * Returns the reason why a key allows no login at the time `at`. Returns undefined if the key can allow logins at this
 * time.
 */
export function lapseOf(row: OwnedKey, at: Date): KeyLapse | undefined {
  const { key, owner } = credentialOf(row);
  return key && keyLapse(key, owner, at);
}

/** Reads stored public keys and changes the tags of their filters. */
export const publicKeyRows = filteredRows("PublicKey", { tenantId: "tenantId", fingerprint: "fingerprint" });

const ownerIn = ({ ownerId }: Pick<PublicKey, "ownerId">) => ownerId ?? undefined;

/** Returns the declared fields of a public key. They do not contain the key data, which never changes. */
const declaredPublicKey = presenter<FoundKey, typeof declared>(declared, {
  filter: declaredFilter,
  owner: ownerIn,
});

export const publicKeyObject: ManagedObject<FoundKey> = {
  missing: "no such key",
  id: (_, { params, result }) => params.fingerprint ?? String(result?.fingerprint),
  find: (tx, tenantId, fingerprint) => publicKeyRows.find(tx, { tenantId, fingerprint }),
  declared: declaredPublicKey,
  declare: (tx, tenantId, fingerprint, declaredBy) =>
    updateRow(tx, "PublicKey", { tenantId, fingerprint }, { declaredBy }),
};

/**
 * Converts a public key to its wire format (models section 5).
 * @param formerOwner address of an owner who is not a member of the namespace; set only for administrators
 */
export const presentPublicKey = presenter<FoundKey, typeof publicKey, [formerOwner?: string | null]>(
  publicKey,
  {
    filter: presentFilter,
    owner: ownerIn,
    owner_email: (_, formerOwner) => formerOwner ?? undefined,
    revision: (row) => revisionOf(declaredPublicKey(row)),
  },
);

/** The table for lists of public keys, and the fields by which clients can filter and sort these lists. */
const publicKeyTable: Table = {
  from: sql`"PublicKey"`,
  id: sql`"PublicKey"."fingerprint"`,
  fields: {
    ...presentPublicKey.listed("PublicKey"),
    data: largeText("PublicKey", "data"),
    owner: column("text", "PublicKey", "ownerId"),
    "filter.hostname": column("text", "PublicKey", "hostname"),
    "filter.tags": listOf(sql`"PublicKeyTag"`, publicKeyRows.owner, sql`"PublicKeyTag"."tag"`),
  },
};

const keys: FilterOwner<"PublicKey"> = {
  noun: "key",
  RefusedReplacement: NotFoundError,
  rows: publicKeyRows,
};

export const addPublicKeyTag: ObjectWrite<PublicOperations["addPublicKeyTag"], FoundKey> = (context) =>
  addFilterTag(context, keys, context.body.tag);

export const updatePublicKeyTags: ObjectWrite<PublicOperations["updatePublicKeyTags"], FoundKey> = (
  context,
) => replaceFilterTags(context, keys, context.body.tags);

export const removePublicKeyTag: ObjectWrite<PublicOperations["removePublicKeyTag"], FoundKey> = (context) =>
  removeFilterTag(context, keys, context.params.tag);

/**
 * Parses a public key.
 * @throws InvalidError `data` is not a public key, or clients cannot log in with this type of key
 */
function readKey(data: string): { readonly fingerprint: string; readonly data: string } {
  try {
    const key = parseSshPublicKey(Buffer.from(data, "base64").toString("utf8"));
    if (!LOGIN_KEY_TYPES.includes(key.type))
      throw new Error(
        `clients cannot log in with a key of the type ${key.type}; use one of ${LOGIN_KEY_TYPES.join(", ")}`,
      );
    // The comment of the key is omitted, so that the same key always results in the same string (models section 5).
    return {
      fingerprint: key.fingerprint,
      data: Buffer.from(`${sshPublicKeyLine(key)}\n`).toString("base64"),
    };
  } catch (error) {
    throw new InvalidError(
      `data: ${error instanceof Error ? error.message : "must be an OpenSSH public key"}`,
    );
  }
}

/**
 * Checks that a user may own keys of the namespace. A user with a pending invitation may own keys too, so that a
 * program can declare the membership and the keys together.
 * @throws InvalidError the user is not a member
 */
async function checkOwner(db: SqlClient, tenantId: string, userId: string): Promise<void> {
  if ((await findRow(db, "Member", { tenantId, userId })) === null)
    throw new InvalidError("owner: the user is not a member of the namespace");
}

interface ListedKey extends PublicKey {
  readonly formerOwner: string | null;
}

/**
 * The address of an owner who is not a member of the namespace. It shows an administrator which keys allow logins again
 * if the user becomes a member.
 */
const FORMER_OWNER = sql`(SELECT "User"."email" FROM "User" WHERE "User"."id" = "PublicKey"."ownerId"
  AND NOT EXISTS (SELECT 1 FROM "Member"
    WHERE "Member"."tenantId" = "PublicKey"."tenantId" AND "Member"."userId" = "PublicKey"."ownerId"))`;

export const getPublicKeys: Handler<PublicOperations["getPublicKeys"]> = async (context) => {
  const { services, identity, query, header } = context;
  const formerOwner = roleAtLeast(identity.role, "administrator") ? FORMER_OWNER : sql`NULL`;
  const columns = sql`${publicKeyRows.columns}, ${formerOwner} AS "formerOwner"`;
  const { rows, total } = await listColumns<ListedKey>(services, publicKeyTable, columns, {
    where: sql`"PublicKey"."tenantId" = ${identity.tenant}`,
    filter: query.filter,
    trailing: "or",
    sort: { by: [sql`"PublicKey"."createdAt"`, sql`"PublicKey"."fingerprint"`], direction: "asc" },
    page: query.page,
    perPage: query.per_page,
  });
  header(TOTAL_COUNT, total);
  return rows.map((row) => presentPublicKey(publicKeyRows.withTags(row), row.formerOwner));
};

export const createPublicKey: ObjectWrite<PublicOperations["createPublicKey"], FoundKey> = async (
  context,
) => {
  const { services, identity, body, creationKey, declaration } = context;
  const tenantId = identity.tenant;
  const key = readKey(body.data);
  const row = await createOnce(context, {
    taken: "the namespace already has this key",
    find: async (tx, creation) => {
      const known = await publicKeyRows.find(tx, { tenantId, creationKey: creation });
      if (known && known.fingerprint !== key.fingerprint)
        throw new ConflictError(
          `this Idempotency-Key already created the public key ${known.fingerprint}; send a new Idempotency-Key`,
        );
      return known;
    },
    create: async (tx) => {
      await checkFilter(tx, tenantId, body.filter);
      if (body.owner) await checkOwner(tx, tenantId, body.owner);
      const created = {
        tenantId,
        ...key,
        ...publicKeyColumns(body),
        ...filterColumn(body.filter),
        expiresAt: newEnd(services, "expires_at", body.expires_at),
        ownerId: body.owner ?? null,
        createdAt: services.now(),
        creationKey,
        declaredBy: declaredColumn(declaration, services.now()),
      };
      if (!(await insertRows(tx, "PublicKey", [created]))) return null;
      const { tags = [] } = body.filter;
      await publicKeyRows.insertTags(tx, created, tags);
      return { ...created, tags: tagRows(tags) };
    },
  });
  context.became(row);
  return presentPublicKey(row);
};

export const updatePublicKey: ObjectWrite<PublicOperations["updatePublicKey"], FoundKey> = async ({
  services: { db },
  body,
  found,
  became,
}) => {
  const stored = found();
  const { tenantId, fingerprint } = stored;
  const key = { tenantId, fingerprint };
  await checkFilter(db, tenantId, body.filter);
  const { owner: ownerId = stored.ownerId } = body;
  // A user whose membership has ended is still the owner of the key. Therefore, the owner is checked only if the
  // request changes the owner.
  if (ownerId !== null && ownerId !== stored.ownerId) await checkOwner(db, tenantId, ownerId);
  const changes = {
    ...publicKeyColumns(body),
    ...filterColumn(body.filter),
    expiresAt: updatedEnd("expires_at", body.expires_at, stored.expiresAt),
    ownerId,
  };
  await leaveToCommit(db, updateRow(db, "PublicKey", key, changes));
  const { tags = [] } = body.filter;
  await publicKeyRows.replaceTags(db, stored, tags);
  const row = { ...stored, ...changes, tags: tagRows(tags) };
  became(row);
  return presentPublicKey(row);
};

export const deletePublicKey = deletion("PublicKey", ["tenantId", "fingerprint"]);
