import type { PublicOperations, saml } from "@gatehouse-access/sdk/contract";
import { NotImplementedError } from "../../errors.ts";
import type { Handlers } from "../../http/handler.ts";
import { loginUrl } from "./identityProvider.ts";

export const samlHandlers: Handlers<Pick<PublicOperations, keyof typeof saml & keyof PublicOperations>> = {
  getSamlAuthUrl: async ({ services }) => {
    const { saml } = services.settings;
    if (saml === undefined) throw new NotImplementedError("SAML is off on this instance");
    return { url: await loginUrl(services, saml) };
  },
};
