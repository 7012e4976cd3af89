import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handler } from "../../http/handler.ts";

/**
 * Returns an identifier of the namespace for support: a digest that is keyed with the instance's secret. The identifier
 * does not reveal the namespace's tenant id.
 */
export const getNamespaceSupport: Handler<PublicOperations["getNamespaceSupport"]> = async ({
  services,
  identity,
}) => ({ identifier: services.sealer.mark(identity.tenant, "namespace support") });
