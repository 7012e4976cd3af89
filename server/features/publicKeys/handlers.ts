import {
  type PublicOperations,
  parseSshPublicKey,
  type publicKeys,
  sshPublicKeyLine,
} from "@gatehouse-access/sdk/contract";
import { createOnce } from "../../changes/createOnce.ts";
import { declaredColumn } from "../../changes/declaredBy.ts";
import type { PublicKey } from "../../db/generated/sqlite/client.ts";
import { sql } from "../../db/sql.ts";
import { inTransaction } from "../../db/transaction.ts";
import { ConflictError, InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler, Handlers } from "../../http/handler.ts";
import { listColumns } from "../../lists/listRows.ts";
import { checkFilter, newFilter, replacedFilter } from "../filters/filter.ts";
import { withTags } from "../tags/tagList.ts";
import { presentPublicKey, publicKeyTable } from "./publicKey.ts";
import { addPublicKeyTag, removePublicKeyTag, updatePublicKeyTags } from "./tags.ts";

/** @throws InvalidError `data` is not a public key */
function readKey(data: string): { readonly fingerprint: string; readonly data: string } {
  try {
    const key = parseSshPublicKey(Buffer.from(data, "base64").toString("utf8"));
    // Without the comment, so that the same key is the same text (models section 5).
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

const getPublicKeys: Handler<PublicOperations["getPublicKeys"]> = async (context) => {
  const { services, identity, query, header } = context;
  const { tenant: tenantId } = identity;
  const { rows, total } = await listColumns<PublicKey>(services, publicKeyTable, sql`"PublicKey".*`, {
    where: sql`"PublicKey"."tenantId" = ${tenantId}`,
    filter: query.filter,
    trailing: "or",
    sort: { by: [sql`"PublicKey"."createdAt"`, sql`"PublicKey"."fingerprint"`], direction: "asc" },
    page: query.page,
    perPage: query.per_page,
  });
  header("X-Total-Count", total);
  const tagged = rows.filter((row) => row.hostname === null).map((row) => row.fingerprint);
  const tags =
    tagged.length === 0
      ? []
      : await services.db.publicKeyTag.findMany({
          where: { tenantId, fingerprint: { in: tagged } },
          orderBy: { position: "asc" },
        });
  const tagsOf = Map.groupBy(tags, (tag) => tag.fingerprint);
  return rows.map((row) => presentPublicKey({ ...row, tags: tagsOf.get(row.fingerprint) ?? [] }));
};

const createPublicKey: Handler<PublicOperations["createPublicKey"]> = async (context) => {
  const { services, identity, body, creationKey, declaration } = context;
  const tenantId = identity.tenant;
  const key = readKey(body.data);
  const row = await createOnce(context, {
    taken: "the namespace has this key already",
    find: async (tx, made) => {
      const where = { tenantId_creationKey: { tenantId, creationKey: made } };
      const known = await tx.publicKey.findUnique({ where, include: withTags });
      if (known && known.fingerprint !== key.fingerprint)
        throw new ConflictError(`Idempotency-Key: made the public key ${known.fingerprint}`);
      return known;
    },
    create: async (tx) => {
      await checkFilter(tx, tenantId, body.filter);
      return tx.publicKey.create({
        data: {
          tenantId,
          creationKey,
          declaredBy: declaredColumn(declaration, services.now()),
          ...key,
          name: body.name,
          username: body.username,
          ...newFilter(body.filter),
          createdAt: services.now(),
        },
        include: withTags,
      });
    },
  });
  return presentPublicKey(row);
};

const updatePublicKey: Handler<PublicOperations["updatePublicKey"]> = async (context) => {
  const { services, identity, params, body } = context;
  const key = { tenantId: identity.tenant, fingerprint: params.fingerprint };
  const row = await inTransaction(services, async (tx) => {
    const known = await tx.publicKey.findUnique({ where: { tenantId_fingerprint: key } });
    if (!known) throw new NotFoundError("no such key");
    await checkFilter(tx, key.tenantId, body.filter);
    return tx.publicKey.update({
      where: { tenantId_fingerprint: key },
      data: {
        name: body.name,
        username: body.username,
        ...replacedFilter(body.filter),
      },
      include: withTags,
    });
  });
  return presentPublicKey(row);
};

const deletePublicKey: Handler<PublicOperations["deletePublicKey"]> = async (context) => {
  const { services, identity, params } = context;
  const { count } = await services.db.publicKey.deleteMany({
    where: { tenantId: identity.tenant, fingerprint: params.fingerprint },
  });
  if (count === 0) throw new NotFoundError("no such key");
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
