import type { PublicOperations, tags } from "@gatehouse-access/sdk/contract";
import { ConflictError, InvalidError, NotFoundError } from "../../http/errors.ts";
import type { Handler, Handlers } from "../../http/routes.ts";
import { inTransaction, type Transaction } from "../transaction.ts";
import { knownTags } from "./knownTags.ts";

const getTags: Handler<PublicOperations["getTags"]> = async ({ services, identity, header }) => {
  const names = await knownTags(services.db, identity.tenant);
  header("X-Total-Count", names.length);
  return names;
};

async function checkKnown(tx: Transaction, tenantId: string, tag: string): Promise<void> {
  if ((await knownTags(tx, tenantId, [tag])).length === 0) throw new NotFoundError("tag: is not used");
}

/** On devices and filters at once (rules section 16.6). */
const renameTag: Handler<PublicOperations["renameTag"]> = async ({ services, identity, params, body }) => {
  const tenantId = identity.tenant;
  await inTransaction(services, async (tx) => {
    await checkKnown(tx, tenantId, params.tag);
    if ((await knownTags(tx, tenantId, [body.tag])).length > 0)
      throw new ConflictError("tag: is used already");
    const rename = { where: { tenantId, tag: params.tag }, data: { tag: body.tag } };
    await tx.deviceTag.updateMany(rename);
    await tx.publicKeyTag.updateMany(rename);
  });
  return undefined;
};

/** Refused where a filter would lose its last tag: it would then match every device (rules section 16.7). */
const deleteTag: Handler<PublicOperations["deleteTag"]> = async ({ services, identity, params }) => {
  const where = { tenantId: identity.tenant, tag: params.tag };
  await inTransaction(services, async (tx) => {
    await checkKnown(tx, where.tenantId, where.tag);
    const last = await tx.publicKey.findFirst({
      where: {
        tenantId: where.tenantId,
        tags: { some: { tag: where.tag }, none: { tag: { not: where.tag } } },
      },
      orderBy: [{ createdAt: "asc" }, { fingerprint: "asc" }],
    });
    if (last) {
      throw new InvalidError(
        `tag: is the last one in the filter of the key "${last.name}" (${last.fingerprint})`,
      );
    }
    await tx.deviceTag.deleteMany({ where });
    await tx.publicKeyTag.deleteMany({ where });
  });
  return undefined;
};

export const tagHandlers: Handlers<Pick<PublicOperations, keyof typeof tags & keyof PublicOperations>> = {
  getTags,
  renameTag,
  deleteTag,
};
