import {
  LOGIN_KEY_TYPES,
  type PublicOperations,
  parseSshPublicKey,
  type publicKeys,
  roleAtLeast,
  sshPublicKeyLine,
} from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { declaredColumn } from "../../changes/managedObject.ts";
import type { PublicKey } from "../../db/generated/sqlite/client.ts";
import { deleteRows, findRow, insertRows, updateRow } from "../../db/sql/rows.ts";
import { leaveToCommit, type SqlClient, sql } from "../../db/sql/sql.ts";
import { ConflictError, InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler, Handlers, ObjectWrite } from "../../http/handler.ts";
import { listColumns } from "../../lists/listRows.ts";
import { newEnd, updatedEnd } from "../accessEnd.ts";
import { checkFilter, filterColumn } from "../filters/filter.ts";
import { tagRows } from "../tags/tagList.ts";
import {
  declaredPublicKey,
  type FoundKey,
  presentPublicKey,
  publicKeyRows,
  publicKeyTable,
} from "./publicKey.ts";
import { addPublicKeyTag, removePublicKeyTag, updatePublicKeyTags } from "./tags.ts";

/**
 * Parses a public key.
 * @throws InvalidError `data` is not a public key, or a key of a type with which clients cannot log in
 */
function readKey(data: string): { readonly fingerprint: string; readonly data: string } {
  try {
    const key = parseSshPublicKey(Buffer.from(data, "base64").toString("utf8"));
    if (!LOGIN_KEY_TYPES.includes(key.type))
      throw new Error(
        `must be a key with which clients can log in, not ${key.type}: one of ${LOGIN_KEY_TYPES.join(", ")}`,
      );
    // The comment of the key is omitted, so that the same key always has the same text (models section 5).
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
 * Checks that a user may own keys of the namespace. A user who has not accepted the invitation yet may own keys, so that
 * a program can declare the membership and the keys together.
 * @throws InvalidError the user is not a member
 */
async function checkOwner(db: SqlClient, tenantId: string, userId: string): Promise<void> {
  if ((await findRow(db, "Member", { tenantId, userId })) === null)
    throw new InvalidError("owner: is not a member of the namespace");
}

interface ListedKey extends PublicKey {
  readonly formerOwner: string | null;
}

const noSuchKey = () => new NotFoundError("no such key");

/**
 * The address of an owner who is not a member of the namespace. An administrator needs it to see which keys admit logins
 * again if the user becomes a member.
 */
const FORMER_OWNER = sql`(SELECT "User"."email" FROM "User" WHERE "User"."id" = "PublicKey"."ownerId"
  AND NOT EXISTS (SELECT 1 FROM "Member"
    WHERE "Member"."tenantId" = "PublicKey"."tenantId" AND "Member"."userId" = "PublicKey"."ownerId"))`;

const getPublicKeys: Handler<PublicOperations["getPublicKeys"]> = async (context) => {
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
  header("X-Total-Count", total);
  return rows.map((row) => presentPublicKey(publicKeyRows.withTags(row), row.formerOwner));
};

const createPublicKey: ObjectWrite<PublicOperations["createPublicKey"]> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const tenantId = identity.tenant;
  const key = readKey(body.data);
  const row = await createOnce(context, {
    taken: "the namespace already has this key",
    find: async (tx, creation) => {
      const known = await publicKeyRows.find(tx, { tenantId, creationKey: creation });
      if (known && known.fingerprint !== key.fingerprint)
        throw new ConflictError(
          `Idempotency-Key: was already used to create the public key ${known.fingerprint}`,
        );
      return known;
    },
    create: async (tx) => {
      await checkFilter(tx, tenantId, body.filter);
      if (body.owner) await checkOwner(tx, tenantId, body.owner);
      const created = {
        tenantId,
        ...key,
        name: body.name,
        username: body.username,
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
  context.became(declaredPublicKey(row));
  return presentPublicKey(row);
};

const updatePublicKey: ObjectWrite<PublicOperations["updatePublicKey"], FoundKey> = async ({
  services: { db },
  body,
  found,
  became,
}) => {
  if (found === null) throw noSuchKey();
  const { tenantId, fingerprint } = found;
  const key = { tenantId, fingerprint };
  await checkFilter(db, tenantId, body.filter);
  const { owner: ownerId = found.ownerId } = body;
  // An owner whose membership has ended stays the owner of the key, so only another owner is checked.
  if (ownerId !== null && ownerId !== found.ownerId) await checkOwner(db, tenantId, ownerId);
  const changes = {
    name: body.name,
    username: body.username,
    ...filterColumn(body.filter),
    expiresAt: updatedEnd("expires_at", body.expires_at, found.expiresAt),
    ownerId,
  };
  await leaveToCommit(db, updateRow(db, "PublicKey", key, changes));
  const { tags = [] } = body.filter;
  await publicKeyRows.replaceTags(db, found, tags);
  const row = { ...found, ...changes, tags: tagRows(tags) };
  became(declaredPublicKey(row));
  return presentPublicKey(row);
};

const deletePublicKey: ObjectWrite<PublicOperations["deletePublicKey"], FoundKey> = async ({
  services: { db },
  found,
  became,
}) => {
  if (found === null) throw noSuchKey();
  const { tenantId, fingerprint } = found;
  await leaveToCommit(db, deleteRows(db, "PublicKey", { tenantId, fingerprint }));
  became(null);
  return undefined;
};

export const publicKeyHandlers: Handlers<
  Pick<PublicOperations, keyof typeof publicKeys & keyof PublicOperations>
> = {
  getPublicKeys,
  createPublicKey,
  updatePublicKey,
  deletePublicKey,
  addPublicKeyTag,
  updatePublicKeyTags,
  removePublicKeyTag,
};
