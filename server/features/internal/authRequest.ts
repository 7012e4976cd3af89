import type { InternalOperations } from "@gatehouse-access/sdk/contract";
import type { Handler } from "../../http/routes.ts";

/** Says whose credential the request carries (rules section 3). The key itself is nobody's business. */
export const authRequest: Handler<InternalOperations["authRequest"]> = async ({ identity, header }) => {
  if (identity.tenant !== "") header("X-Tenant-ID", identity.tenant);
  switch (identity.kind) {
    case "user":
      header("X-ID", identity.userId);
      header("X-Username", identity.username);
      if (identity.role !== null) header("X-Role", identity.role);
      break;
    case "apikey":
      header("X-Role", identity.role);
      header("X-Api-Key", "true");
      break;
    case "device":
      header("X-Device-UID", identity.uid);
      break;
  }
  return undefined;
};
