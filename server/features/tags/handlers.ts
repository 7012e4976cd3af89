import { type PublicOperations, TOTAL_COUNT } from "@gatehouse-access/sdk/contract";
import type { Declared } from "../../changes/managedObject.ts";
import { type SqlClient, sql } from "../../db/sql/sql.ts";
import { ConflictError, InvalidError } from "../../errors.ts";
import type { Handler, ObjectWrite } from "../../http/handler.ts";
import { firewallRuleRows } from "../firewall/rules.ts";
import { publicKeyRows } from "../publicKeys/publicKeys.ts";
import { deleteEverywhere, knownTags, renameEverywhere } from "./tagTables.ts";

export const getTags: Handler<PublicOperations["getTags"]> = async ({ services, identity, header }) => {
  const names = await knownTags(services.db, identity.tenant);
  header(TOTAL_COUNT, names.length);
  return names;
};

/** Renames a tag on all devices and in all filters by changing one row (rules section 16.6). */
export const renameTag: ObjectWrite<PublicOperations["renameTag"], Declared> = async (context) => {
  const { services, identity, params, body, found, became } = context;
  const { tenant: tenantId } = identity;
  found();
  if ((await knownTags(services.db, tenantId, [body.tag])).length > 0)
    throw new ConflictError("tag: the namespace already has this tag; choose a different name");
  await renameEverywhere(services.db, tenantId, params.tag, body.tag);
  became({ tag: body.tag });
  return undefined;
};

/**
 * Returns a description of a key or rule whose filter contains only this tag, for an error message. Returns undefined
 * if there is no such key or rule.
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
export const deleteTag: ObjectWrite<PublicOperations["deleteTag"], Declared> = async (context) => {
  const { services, identity, params, found, became } = context;
  const { tenant: tenantId } = identity;
  const { tag } = params;
  found();
  const owner = await ownerOfOnlyTag(services.db, tenantId, tag);
  if (owner)
    throw new InvalidError(
      `tag: the filter of ${owner} has no other tag; add another tag to the filter first`,
    );
  await deleteEverywhere(services.db, tenantId, tag);
  became(null);
  return undefined;
};
