import type { PublicOperations, tags } from "@gatehouse-access/sdk/contract";
import { type SqlClient, sql } from "../../db/sql/sql.ts";
import { ConflictError, InvalidError, NotFoundError } from "../../errors.ts";
import type { Handler, Handlers, ObjectWrite } from "../../http/handler.ts";
import { firewallRuleRows } from "../firewall/firewallRule.ts";
import { publicKeyRows } from "../publicKeys/publicKey.ts";
import { deleteEverywhere, knownTags, renameEverywhere } from "./tagTables.ts";

const notUsed = () => new NotFoundError("tag: is not used");

const getTags: Handler<PublicOperations["getTags"]> = async ({ services, identity, header }) => {
  const names = await knownTags(services.db, identity.tenant);
  header("X-Total-Count", names.length);
  return names;
};

/** Renames a tag on all devices and in all filters, by a change of one row (rules section 16.6). */
const renameTag: ObjectWrite<PublicOperations["renameTag"]> = async (context) => {
  const { services, identity, params, body, found, became } = context;
  const { tenant: tenantId } = identity;
  if (found === null) throw notUsed();
  if ((await knownTags(services.db, tenantId, [body.tag])).length > 0)
    throw new ConflictError("tag: is already used");
  await renameEverywhere(services.db, tenantId, params.tag, body.tag);
  became({ tag: body.tag });
  return undefined;
};

/**
 * Returns a description of a key or rule whose filter has only this tag, for an error message. Returns undefined if no
 * such key or rule exists.
 */
async function ownerOfOnlyTag(db: SqlClient, tenantId: string, tag: string): Promise<string | undefined> {
  const key = await publicKeyRows.findByOnlyTag(
    db,
    tenantId,
    tag,
    sql`"createdAt" ASC, "PublicKey"."fingerprint"`,
  );
  if (key) return `the key "${key.name}" (${key.fingerprint})`;
  const rule = await firewallRuleRows.findByOnlyTag(db, tenantId, tag, sql`"id"`);
  return rule ? `the firewall rule ${rule.id}` : undefined;
}

/**
 * Deletes a tag. Rejects the deletion if the tag is the only tag of a filter, because a filter without tags would match
 * every device (rules section 16.7).
 */
const deleteTag: ObjectWrite<PublicOperations["deleteTag"]> = async (context) => {
  const { services, identity, params, found, became } = context;
  const { tenant: tenantId } = identity;
  const { tag } = params;
  if (found === null) throw notUsed();
  const owner = await ownerOfOnlyTag(services.db, tenantId, tag);
  if (owner) throw new InvalidError(`tag: is the last tag in the filter of ${owner}`);
  await deleteEverywhere(services.db, tenantId, tag);
  became(null);
  return undefined;
};

export const tagHandlers: Handlers<Pick<PublicOperations, keyof typeof tags & keyof PublicOperations>> = {
  getTags,
  renameTag,
  deleteTag,
};
