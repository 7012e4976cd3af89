import type { PublicOperations, support } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";

/**
 * Returns a digest of the namespace, keyed with the instance's secret. Only this instance can compute it, and it
 * reveals nothing.
 */
const getNamespaceSupport: Handlers<PublicOperations>["getNamespaceSupport"] = async ({
  services,
  identity,
}) => ({ identifier: services.sealer.mark(identity.tenant, "namespace support") });

export const supportHandlers: Handlers<
  Pick<PublicOperations, keyof typeof support & keyof PublicOperations>
> = { getNamespaceSupport };
