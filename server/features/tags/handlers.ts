import type { PublicOperations, tags } from "@gatehouse-access/sdk/contract";
import { inTransaction, type Transaction } from "../../db/sql/transaction.ts";
import { ConflictError, InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler, Handlers } from "../../http/handler.ts";
import { deleteEverywhere, knownTags, renameEverywhere } from "./tagTables.ts";

const getTags: Handler<PublicOperations["getTags"]> = async ({ services, identity, header }) => {
  const names = await knownTags(services.db, identity.tenant);
  header("X-Total-Count", names.length);
  return names;
};

async function checkKnown(tx: Transaction, tenantId: string, tag: string): Promise<void> {
  if ((await knownTags(tx, tenantId, [tag])).length === 0) throw new NotFoundError("tag: is not used");
}

/** Renames the tag on devices and in filters at once (rules section 16.6). */
const renameTag: Handler<PublicOperations["renameTag"]> = async ({ services, identity, params, body }) => {
  const tenantId = identity.tenant;
  await inTransaction(services, async (tx) => {
    await checkKnown(tx, tenantId, params.tag);
    if ((await knownTags(tx, tenantId, [body.tag])).length > 0)
      throw new ConflictError("tag: is used already");
    await renameEverywhere(tx, tenantId, params.tag, body.tag);
  });
  return undefined;
};

/** The name, for messages, of a key or rule whose filter has only this tag. */
async function ownerOfLast(tx: Transaction, tenantId: string, tag: string): Promise<string | undefined> {
  const where = { tenantId, tags: { some: { tag }, none: { tag: { not: tag } } } };
  const key = await tx.publicKey.findFirst({
    where,
    orderBy: [{ createdAt: "asc" }, { fingerprint: "asc" }],
  });
  if (key) return `the key "${key.name}" (${key.fingerprint})`;
  const rule = await tx.firewallRule.findFirst({ where, orderBy: { id: "asc" } });
  return rule ? `the firewall rule ${rule.id}` : undefined;
}

/** Refuses to take the last tag of a filter, which would then match every device (rules section 16.7). */
const deleteTag: Handler<PublicOperations["deleteTag"]> = async ({ services, identity, params }) => {
  const { tenant: tenantId } = identity;
  const { tag } = params;
  await inTransaction(services, async (tx) => {
    await checkKnown(tx, tenantId, tag);
    const owner = await ownerOfLast(tx, tenantId, tag);
    if (owner) throw new InvalidError(`tag: is the last one in the filter of ${owner}`);
    await deleteEverywhere(tx, tenantId, tag);
  });
  return undefined;
};

export const tagHandlers: Handlers<Pick<PublicOperations, keyof typeof tags & keyof PublicOperations>> = {
  getTags,
  renameTag,
  deleteTag,
};
