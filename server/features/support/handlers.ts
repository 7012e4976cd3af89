import type { PublicOperations, support } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";

/**
 * Returns an identifier of the namespace for support: a digest that is keyed with the instance's secret. The identifier
 * does not reveal the namespace's tenant id.
 */
const getNamespaceSupport: Handlers<PublicOperations>["getNamespaceSupport"] = async ({
  services,
  identity,
}) => ({ identifier: services.sealer.mark(identity.tenant, "namespace support") });

export const supportHandlers: Handlers<
  Pick<PublicOperations, keyof typeof support & keyof PublicOperations>
> = { getNamespaceSupport };
