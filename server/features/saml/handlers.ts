import type { PublicOperations } from "@gatehouse-access/sdk/contract";
import { NotImplementedError } from "../../errors.ts";
import type { Handler } from "../../http/handler.ts";
import { loginUrl } from "./identityProvider.ts";

export const getSamlAuthUrl: Handler<PublicOperations["getSamlAuthUrl"]> = async ({ services }) => {
  const { saml } = services.settings;
  if (saml === undefined) throw new NotImplementedError("SAML is off on this instance");
  return { url: await loginUrl(services, saml) };
};
