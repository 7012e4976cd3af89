import type { PublicOperations, support } from "@gatehouse-access/sdk/contract";
import type { Handlers } from "../../http/handler.ts";

/** Nobody else can know it, and it says nothing of the namespace: a digest keyed by the instance's secret. */
const getNamespaceSupport: Handlers<PublicOperations>["getNamespaceSupport"] = async ({
  services,
  identity,
}) => ({ identifier: services.sealer.mark(identity.tenant, "namespace support") });

export const supportHandlers: Handlers<
  Pick<PublicOperations, keyof typeof support & keyof PublicOperations>
> = { getNamespaceSupport };
