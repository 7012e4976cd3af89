import {
  type PublicOperations,
  parseSshPublicKey,
  type publicKeys,
  sshPublicKeyLine,
} from "@gatehouse-access/sdk/contract";
import { ConflictError, InvalidError, isDatabaseError, NotFoundError } from "../../http/errors.ts";
import type { Context, Handler, Handlers } from "../../http/routes.ts";
import { inOrder, listRows } from "../lists/listRows.ts";
import { sql } from "../lists/sql.ts";
import { knownTags } from "../tags/knownTags.ts";
import { inTransaction, type Transaction } from "../transaction.ts";
import { presentPublicKey, withTags } from "./presentPublicKey.ts";
import { publicKeyTable } from "./publicKeyTable.ts";

type Filter = Context<PublicOperations["createPublicKey"]>["body"]["filter"];

/** @throws InvalidError what `data` holds is no public key */
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

/** A filter may name only tags that something carries (rules section 16.4). */
async function checkTags(tx: Transaction, tenantId: string, { tags }: Filter): Promise<void> {
  if (!tags) return;
  const known = await knownTags(tx, tenantId, tags);
  const missing = tags.filter((tag) => !known.includes(tag));
  if (missing.length > 0)
    throw new NotFoundError(`filter.tags: ${missing.join(", ")} not used in the namespace`);
}

const tagRows = ({ tags }: Filter) => (tags ?? []).map((tag, position) => ({ tag, position }));

const getPublicKeys: Handler<PublicOperations["getPublicKeys"]> = async (context) => {
  const { services, identity, query, header } = context;
  const { ids, total } = await listRows(services, publicKeyTable, {
    where: sql`"PublicKey"."tenantId" = ${identity.tenant}`,
    filter: query.filter,
    trailing: "or",
    sort: [sql`"PublicKey"."createdAt" ASC`, sql`"PublicKey"."fingerprint" ASC`],
    page: query.page,
    perPage: query.per_page,
  });
  header("X-Total-Count", total);
  const rows = await services.db.publicKey.findMany({
    where: { tenantId: identity.tenant, fingerprint: { in: ids } },
    include: withTags,
  });
  return inOrder(ids, rows, (row) => row.fingerprint).map(presentPublicKey);
};

const createPublicKey: Handler<PublicOperations["createPublicKey"]> = async ({
  services,
  identity,
  body,
}) => {
  const tenantId = identity.tenant;
  const key = readKey(body.data);
  const row = await inTransaction(services, async (tx) => {
    await checkTags(tx, tenantId, body.filter);
    return tx.publicKey.create({
      data: {
        tenantId,
        ...key,
        name: body.name,
        username: body.username,
        hostname: body.filter.hostname ?? null,
        createdAt: services.now(),
        tags: { create: tagRows(body.filter) },
      },
      include: withTags,
    });
  }).catch((error: unknown) => {
    throw isDatabaseError(error, "P2002") ? new ConflictError("the namespace has this key already") : error;
  });
  return presentPublicKey(row);
};

const updatePublicKey: Handler<PublicOperations["updatePublicKey"]> = async (context) => {
  const { services, identity, params, body } = context;
  const key = { tenantId: identity.tenant, fingerprint: params.fingerprint };
  const row = await inTransaction(services, async (tx) => {
    const known = await tx.publicKey.findUnique({ where: { tenantId_fingerprint: key } });
    if (!known) throw new NotFoundError("no such key");
    await checkTags(tx, key.tenantId, body.filter);
    return tx.publicKey.update({
      where: { tenantId_fingerprint: key },
      data: {
        name: body.name,
        username: body.username,
        hostname: body.filter.hostname ?? null,
        tags: { deleteMany: {}, create: tagRows(body.filter) },
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
> = { getPublicKeys, createPublicKey, updatePublicKey, deletePublicKey };
