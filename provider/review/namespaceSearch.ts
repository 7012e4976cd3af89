import { ConfigurationError } from "@gatehouse-access/sdk";
import type { NamespaceName } from "../policyTests/results.ts";
import { isNamespaceId, type NamespaceSearch } from "../policyTests/testCoverage.ts";
import type { Connection } from "../service/connection.ts";
import { isUnreadable } from "../service/listings.ts";
import { namespaceOf } from "../service/lookups.ts";

/** Returns the name of a namespace. Returns its id as the name if the credential may not read the namespace. */
export async function nameOfNamespace(connection: Connection, tenant: string): Promise<NamespaceName> {
  const namespace = await connection.namespaces.find(tenant).catch((error: unknown) => {
    if (isUnreadable(error)) return undefined;
    throw error;
  });
  return { tenant, name: namespace?.name ?? tenant };
}

/** Returns a function that finds a namespace on the service by its name or id. */
export function searchNamespace(connection: Connection): NamespaceSearch {
  return async (declared) => {
    // An id that does not exist on the service is reported later, when the namespace is read.
    if (isNamespaceId(declared)) return nameOfNamespace(connection, declared);
    try {
      const { tenantId: tenant, name } = await namespaceOf(connection, { name: declared });
      return { tenant, name };
    } catch (error) {
      if (error instanceof ConfigurationError)
        return "the user of the credential is not a member of a namespace with this name";
      if (isUnreadable(error)) return error.message;
      throw error;
    }
  };
}
