import type { Declared, ManagedObject } from "../../changes/managedObject.ts";
import type { ApiKey } from "../../db/generated/sqlite/client.ts";

/** What is declared of an API key. */
export const declaredApiKey = (row: Pick<ApiKey, "name" | "role" | "expiresIn">): Declared => ({
  name: row.name,
  role: row.role,
  expires_in: Number(row.expiresIn),
});

export const apiKeyObject: ManagedObject = {
  // A key is known by its name, which the operation may just have changed.
  id: (_, { params, body, result, done }) => String((done && body.name) || params.key || result?.name),
  async read(tx, tenantId, name) {
    const row = await tx.apiKey.findUnique({ where: { tenantId_name: { tenantId, name } } });
    return row && declaredApiKey(row);
  },
};
