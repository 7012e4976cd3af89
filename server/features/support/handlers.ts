import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import type { Handler } from "../../http/handler.ts";

/**
 * Returns an identifier of the namespace for support. It is a digest that is keyed with the instance's secret, so it
 * does not reveal the tenant id of the namespace.
 */
export const getNamespaceSupport: Handler<PublicOperations["getNamespaceSupport"]> = async ({
  services,
  identity,
}) => ({ identifier: services.sealer.mark(identity.tenant, "namespace support") });
