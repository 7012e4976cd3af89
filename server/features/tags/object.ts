import type { ManagedObject } from "../../changes/managedObject.ts";
import { knownTags } from "./tagTables.ts";

/** A tag's name, on whatever carries it. */
export const tagObject: ManagedObject = {
  id: (_, { params, body, done }) => String((done && body.tag) || params.tag),
  async read(tx, tenantId, tag) {
    return (await knownTags(tx, tenantId, [tag])).length > 0 ? { tag } : null;
  },
};
